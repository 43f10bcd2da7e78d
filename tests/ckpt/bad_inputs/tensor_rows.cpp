// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 30 to 36 and 71: tensors that do not fit their storage.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

struct ViewExpectation {
  int row = 0;
  std::string name = {};
  std::string detail = {};
  std::vector<std::string> says = {};
};

BadInput tensor(const ViewExpectation& expected, const TensorSpec& spec) {
  BadInput input{
      .row = expected.row,
      .name = expected.name,
      .bytes = checkpoint(tensor_pickle(spec)),
      .detail = expected.detail,
      .says = expected.says};
  input.says.emplace_back("record a/data.pkl");
  return input;
}

// {'w': tensor with this object as numel}
std::string numel_pickle(const Pickle& numel) {
  Pickle pickle;
  pickle.op('}').text("w").global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.mark().text("storage").global("torch", "FloatStorage").text("0");
  pickle.text("cpu").raw(numel.bytes()).op('t').op('Q');
  pickle.int4(0).ints({4}).ints({1}).op(0x89).hooks().op('t').op('R');
  return pickle.op('s').stop().bytes();
}

BadInput numel(std::string name, const Pickle& value) {
  return {
      .row = 34,
      .name = std::move(name),
      .bytes = checkpoint(numel_pickle(value)),
      .detail = "E_TYPE",
      .says = {"BINPERSID", "record a/data.pkl"}};
}

BadInput uninitialised(std::string name, const Pickle& pickle) {
  return {
      .row = 71,
      .name = std::move(name),
      .bytes = checkpoint(pickle),
      .detail = "E_PICKLE_TYPE",
      .says = {"uninitialised memory"}};
}

std::string conflicting(const TensorSpec& second) {
  Pickle pickle;
  pickle.op('}').text("w");
  put_tensor(pickle).op('s').text("v");
  put_tensor(pickle, second).op('s').stop();
  return pickle.bytes();
}

std::vector<BadInput> views() {
  return {
      tensor(
          {30, "past_the_end", "E_VIEW_BOUNDS", {"most 16 bytes, got 20"}},
          {.offset = 1}),
      tensor(
          {30, "stride_past_the_end", "E_VIEW_BOUNDS", {"got 24"}},
          {.stride = {4, 1}}),
      tensor(
          {31, "negative_offset", "E_VIEW_NEGATIVE", {"negative offset"}},
          {.offset = -1}),
      tensor(
          {31, "negative_stride", "E_VIEW_NEGATIVE", {"negative stride"}},
          {.stride = {-2, 1}}),
      tensor(
          {31, "negative_size", "E_VIEW_NEGATIVE", {"negative size"}},
          {.size = {-2, 2}}),
      tensor(
          {32, "size_product", "E_OVERFLOW"},
          {.size = {kHuge, 4}, .stride = {0, 0}}),
      tensor(
          {32, "extent", "E_OVERFLOW"},
          {.stride = {kHuge + (kHuge - 1), 2}}),
      tensor({32, "offset_at_the_end", "E_OVERFLOW"}, {.offset = kHuge}),
      tensor({32, "storage_bytes", "E_OVERFLOW"}, {.numel = kHuge}),
      tensor({33, "rank", "E_RANK", {"3 sizes"}}, {.size = {2, 2, 1}}),
      tensor(
          {33, "rank_65", "E_RANK", {"65", "at most 64"}},
          {.size = std::vector<std::int64_t>(65, 1),
           .stride = std::vector<std::int64_t>(65, 1)}),
  };
}

} // namespace

std::vector<BadInput> tensor_rows() {
  std::vector<BadInput> rows = views();
  const std::vector<BadInput> others{
      numel("numel_negative", Pickle(0).int8(-4)),
      numel("numel_bool", Pickle(0).op(0x88)),
      numel("numel_text", Pickle(0).text("4")),
      numel("numel_float", Pickle(0).op('G').number(0, 8)),
      {.row = 35,
       .name = "two_classes",
       .bytes = checkpoint(conflicting({.type = "IntStorage"})),
       .detail = "E_STORAGE_CONFLICT",
       .says = {"torch.IntStorage of 16", "torch.FloatStorage of 16"}},
      {.row = 35,
       .name = "two_numels",
       .bytes =
           checkpoint(conflicting({.size = {1}, .stride = {1}, .numel = 2})),
       .detail = "E_STORAGE_CONFLICT",
       .says = {"of 8 bytes here, but"}},
      tensor({36, "key_parent", "E_NAME"}, {.key = "../data.pkl"}),
      tensor({36, "key_slash", "E_NAME"}, {.key = "0/1"}),
      tensor({36, "key_dot", "E_NAME"}, {.key = ".."}),
      uninitialised(
          "tensor_of_a_size",
          Pickle()
              .global("torch", "FloatTensor")
              .int4(4)
              .tuple(1)
              .op('R')
              .stop()),
      uninitialised(
          "storage_of_a_size",
          Pickle()
              .global("torch.storage", "UntypedStorage")
              .int4(4)
              .tuple(1)
              .op('R')
              .stop()),
      uninitialised(
          "new_storage_of_a_size",
          Pickle()
              .global("torch", "LongStorage")
              .int4(4)
              .tuple(1)
              .op(0x81)
              .stop()),
  };
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
