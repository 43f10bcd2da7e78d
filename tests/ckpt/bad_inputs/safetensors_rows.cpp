// SPDX-License-Identifier: BSD-3-Clause
//
// Row 62: safetensors files with headers that lie.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

constexpr const char* kHeader = "E_SAFETENSORS_HEADER";
constexpr const char* kLayout = "E_SAFETENSORS_LAYOUT";

BadInput header_row(
    std::string name,
    std::string bytes,
    std::string detail,
    std::string says) {
  return {
      .row = 62,
      .name = "safetensors_" + std::move(name),
      .bytes = std::move(bytes),
      .detail = std::move(detail),
      .says = {std::move(says), "offset 0x"}};
}

// A field of one tensor `b` of 8 bytes replaced.
std::string with(const std::string& fields, std::size_t data_bytes = 8) {
  return safetensors("{\"b\":{" + fields + "}}", std::string(data_bytes, 'x'));
}

std::string two(const std::string& first, const std::string& second) {
  return safetensors(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + first +
          R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}",
      std::string(8, 'x'));
}

std::string of_length(std::uint64_t length, const std::string& rest) {
  std::string bytes;
  put_le<std::uint64_t>(bytes, length);
  return bytes + rest;
}

std::string nested_json(std::size_t depth) {
  return R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":)" +
         std::string(depth, '[') + std::string(depth, ']');
}

std::vector<BadInput> lying_headers() {
  return {
      header_row(
          "header_past_file",
          of_length(1000, "{}"),
          kHeader,
          "invalid header length"),
      header_row(
          "header_of_100_mb",
          of_length(100'000'001, "{}"),
          kHeader,
          "header too large"),
      header_row(
          "utf8",
          safetensors("{\"\xff\":{}}"),
          kHeader,
          "invalid UTF-8 in header"),
      header_row(
          "json",
          safetensors("{\"a\":"),
          kHeader,
          "invalid JSON in header"),
      header_row(
          "metadata_type",
          safetensors(R"({"__metadata__":{"a":1}})"),
          kHeader,
          "invalid JSON in header"),
      header_row(
          "depth",
          with(nested_json(100'000)),
          kHeader,
          "invalid JSON in header"),
      header_row(
          "duplicate_key",
          with(
              R"("dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8])"),
          "E_SAFETENSORS_DUPLICATE",
          "b"),
      header_row(
          "negative",
          with(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"),
          kHeader,
          "invalid JSON in header"),
      header_row(
          "float",
          with(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"),
          kHeader,
          "invalid JSON in header"),
      header_row(
          "missing_field",
          with(R"("dtype":"F32","shape":[2])"),
          kHeader,
          "`data_offsets`"),
  };
}

std::vector<BadInput> layouts() {
  return {
      header_row("hole", two("[0,4]", "[5,9]"), kLayout, "tensor `b`"),
      header_row("overlap", two("[0,4]", "[2,6]"), kLayout, "tensor `b`"),
      header_row("backwards", two("[0,4]", "[8,4]"), kLayout, "tensor `b`"),
      header_row(
          "wrong_size",
          with(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
          kLayout,
          "tensor `b`"),
      header_row(
          "trailing_bytes",
          with(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 9),
          kLayout,
          "file not fully covered"),
      header_row(
          "cut_data",
          with(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 7),
          kLayout,
          "expected 8 bytes of data, got 7"),
      header_row(
          "overflow",
          with(
              R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])"),
          "E_OVERFLOW",
          "overflow computing buffer size"),
  };
}

} // namespace

std::vector<BadInput> safetensors_rows() {
  std::vector<BadInput> rows = lying_headers();
  for (BadInput& layout : layouts()) {
    rows.push_back(std::move(layout));
  }
  BadInput unknown = header_row(
      "dtype",
      with(R"("dtype":"F6_E2M3","shape":[2],"data_offsets":[0,8])"),
      "E_DTYPE",
      "F6_E2M3");
  unknown.code = ErrorCode::kUnsupported;
  rows.push_back(std::move(unknown));
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
