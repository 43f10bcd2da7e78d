// SPDX-License-Identifier: BSD-3-Clause
//
// The record data.pkl of a LibTorch archive: protocol 2 in the dialect that
// LibTorch's own unpickler reads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/formats/torchscript/script_classes.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_output.h"

namespace lockstep::ckpt::internal {

/// Pickles objects; the first is the root.
class ScriptPickler {
 public:
  explicit ScriptPickler(const std::vector<ScriptClass>& classes)
      : classes_(classes) {}

  /// Errors: kInvalidArgument (E_TENSOR) for a tensor that leaves its storage,
  /// kUnsupported (E_NOT_SCRIPT); the message has the attribute's path.
  Result<PickledTree> run();

 private:
  Status object(std::size_t index);
  Status value(const ScriptAttribute& attribute, const Value& value);
  Status list(
      const ScriptAttribute& attribute,
      const std::vector<Value>& items);
  Status tuple(const ScriptAttribute& attribute, const Tuple& tuple);
  Status tensor(const Tensor& tensor);
  Status sparse(const LayoutTensor& tensor);
  Status storage(const Tensor& tensor);
  Status quantizer(const Tensor& tensor);
  void flags(const Tensor& tensor);
  void integer(std::int64_t value);
  void integers(const std::vector<std::int64_t>& values);
  void hooks();
  [[nodiscard]] Error refuse(
      ErrorCode code,
      std::string_view detail,
      std::string_view message) const;

  const std::vector<ScriptClass>& classes_;
  PickleOutput out_{"builtins"};
  std::vector<std::string> path_;
  std::vector<std::shared_ptr<Storage>> storages_;
  // The dtype a storage was written with.
  std::map<const Storage*, DType> dtypes_;
};

} // namespace lockstep::ckpt::internal
