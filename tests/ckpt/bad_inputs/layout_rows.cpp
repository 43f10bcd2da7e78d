// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 60 and 61: sparse and quantized tensors.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

// Two int64 numbers as bytes: one index in each of two dimensions.
std::string index_bytes(std::int64_t row, std::int64_t column) {
  std::string bytes;
  put_le<std::int64_t>(bytes, row);
  put_le<std::int64_t>(bytes, column);
  return bytes;
}

// {'w': sparse_coo tensor of `shape` with one value}
std::string sparse(
    std::int64_t row,
    std::int64_t column,
    const std::vector<std::int64_t>& shape) {
  Pickle pickle;
  pickle.op('}').text("w").global("torch._utils", "_rebuild_sparse_tensor");
  pickle.mark().global("torch.serialization", "_get_layout");
  pickle.text("torch.sparse_coo").tuple(1).op('R').mark();
  put_tensor(
      pickle,
      {.size = {2, 1}, .stride = {1, 1}, .type = "LongStorage", .numel = 2});
  put_tensor(pickle, {.size = {1}, .stride = {1}, .key = "1", .numel = 1});
  pickle.global("torch", "Size");
  put_ints(pickle, shape).tuple(1).op('R').op(0x88);
  pickle.op('t').op('t').op('R').op('s').stop();
  return checkpoint(
      pickle.bytes(),
      {.data = index_bytes(row, column),
       .more = {{"a/data/1", std::string(4, '\0')}}});
}

// {'w': quantized tensor of 4 x 4 bytes}; `parameters` push the qparams.
std::string quantized(const Pickle& parameters) {
  Pickle pickle;
  pickle.op('}').text("w").global("torch._utils", "_rebuild_qtensor").mark();
  pickle.storage("QInt8Storage", "0", 16).int4(0).ints({4, 4}).ints({4, 1});
  pickle.raw(parameters.bytes()).op(0x89).hooks().op('t').op('R').op('s');
  return checkpoint(pickle.stop());
}

// (per_channel_affine, scales, zero points, axis)
Pickle per_channel(std::size_t scales, std::size_t zeros, std::int64_t axis) {
  Pickle pickle(0);
  pickle.mark().global("torch", "per_channel_affine").op(']').mark();
  for (std::size_t i = 0; i < scales; ++i) {
    pickle.op('G').number(0x3F, 8);
  }
  pickle.op('e').op(']').mark();
  for (std::size_t i = 0; i < zeros; ++i) {
    pickle.int4(0);
  }
  return pickle.op('e').int8(axis).op('t');
}

BadInput parameters(std::string name, const Pickle& pickle) {
  return {
      .row = 61,
      .name = "qparams_" + std::move(name),
      .bytes = quantized(pickle),
      .detail = "E_QPARAMS",
      .says = {"quantized tensor", "record a/data.pkl"}};
}

} // namespace

std::vector<BadInput> layout_rows() {
  constexpr std::int64_t kWide = 1 << 20;
  const BadInput outside{
      .row = 60,
      .outcome = Outcome::kVerifyFails,
      .detail = "E_SPARSE_INDEX"};
  std::vector<BadInput> rows{
      {.row = 60,
       .name = "sparse_and_wide",
       .bytes = sparse(kWide - 1, kWide - 1, {kWide, kWide}),
       .outcome = Outcome::kRead,
       .says = {"2 tensors"}},
      outside,
      outside,
      parameters("axis", per_channel(4, 4, 2)),
      parameters("axis_negative", per_channel(4, 4, -1)),
      parameters("scales", per_channel(3, 4, 0)),
      parameters("zero_points", per_channel(4, 5, 0)),
      parameters("none", Pickle(0).op('N')),
      parameters(
          "scheme",
          [] {
            Pickle pickle(0);
            pickle.mark().global("torch", "float32").int4(1).int4(0).op('t');
            return pickle;
          }()),
  };
  rows[1].name = "sparse_index_outside";
  rows[1].bytes = sparse(3, 0, {3, 3});
  rows[2].name = "sparse_index_negative";
  rows[2].bytes = sparse(0, -1, {3, 3});
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
