// SPDX-License-Identifier: BSD-3-Clause
//
// What model.json of a TorchScript archive says, without Values: a tree of
// modules that names tensors by number, and the table of the tensors, which
// comes after it. Source of the format: the fields of PyTorch 1.0's
// caffe2/proto/torch.proto as JSON, where 64-bit integers are strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt::internal {

/// A row of the table of tensors.
struct JsonTensor {
  /// caffe2's name: "FLOAT".
  std::string type = {};
  /// Name of the record with its bytes.
  std::string key = {};
  std::string device = {};
  std::vector<std::int64_t> sizes = {};
  /// Units: elements, as the offset.
  std::vector<std::int64_t> strides = {};
  std::int64_t offset = 0;
  bool requires_grad = false;
};

/// A parameter and its tensor, or an attribute and its value.
struct JsonMember {
  std::string name = {};
  std::int64_t id = 0;
};

struct JsonModule {
  std::string name = {};
  std::vector<JsonMember> parameters = {};
  std::vector<JsonMember> attributes = {};
  std::vector<JsonModule> submodules = {};
};

struct JsonModel {
  JsonModule main = {};
  std::vector<JsonTensor> tensors = {};
};

/// Reads the text of model.json. Errors: kCorrupt (E_MODEL_JSON) with the
/// offset, kUnsafe (E_DEPTH, E_LIMIT).
Result<JsonModel> parse_json_model(std::string_view text, const Limits& limits);

} // namespace lockstep::ckpt::internal
