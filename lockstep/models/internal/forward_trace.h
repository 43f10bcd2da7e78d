// SPDX-License-Identifier: BSD-3-Clause
//
// The operations of a forward pass, as the dispatcher sees them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace lockstep::internal {

/// One operation that a module or a function called; what the operation itself
/// calls is left out.
struct TracedOp {
  /// "max_pool2d": without name space, and without the "_" of those in place.
  std::string name = {};
  /// Where the bytes of the tensors it took lie.
  std::vector<const void*> inputs = {};
  /// Of its first result; empty and null if that is no tensor.
  std::vector<std::int64_t> output_shape = {};
  const void* output = nullptr;
  /// Units: bytes.
  std::int64_t output_bytes = 0;
};

/// Calls `work` and returns the operations of this thread; those of threads
/// that it starts, such as the replicas of a DataParallel, are left out.
/// Errors: throws what `work` throws.
std::vector<TracedOp> trace_operations(const std::function<void()>& work);

/// Where the bytes of a tensor lie: which tensor it is, whatever its view. Null
/// if it has none.
const void* storage_of(const at::Tensor& tensor);

/// Of the tensors among the inputs of an operation, also of those in lists.
std::vector<const void*> storages_of(c10::ArrayRef<const c10::IValue> inputs);

/// "max_pool2d" of "aten::max_pool2d_": without name space and without the "_"
/// of operations in place.
std::string plain_name(std::string name);

} // namespace lockstep::internal
