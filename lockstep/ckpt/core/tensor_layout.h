// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors that are not a strided view of one storage: sparse, nested, meta. In
// the tree each stays the call that rebuilds it, an `Object`; here that call is
// read. Nothing is densified.
//   if (auto sparse = layout_tensor(value)) { sparse->parts[0].name ... }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Functions whose calls are read here, as pickles name them; their rows are in
/// pickle/names.cpp.
namespace names {
inline constexpr std::string_view kRebuildSparse =
    "torch._utils._rebuild_sparse_tensor";
inline constexpr std::string_view kRebuildSparseCsr =
    "torch._utils._rebuild_sparse_csr_tensor";
inline constexpr std::string_view kRebuildNested =
    "torch._utils._rebuild_nested_tensor";
inline constexpr std::string_view kRebuildJagged =
    "torch.nested._internal.nested_tensor._rebuild_njt";
inline constexpr std::string_view kRebuildMeta =
    "torch._utils._rebuild_meta_tensor_no_storage";
inline constexpr std::string_view kRebuildWrapper =
    "torch._utils._rebuild_wrapper_subclass";
inline constexpr std::string_view kRebuildDevice =
    "torch._utils._rebuild_device_tensor_from_cpu_tensor";
inline constexpr std::string_view kRebuildDeviceFromNumpy =
    "torch._utils._rebuild_device_tensor_from_numpy";
inline constexpr std::string_view kRebuildParameter =
    "torch._utils._rebuild_parameter";
inline constexpr std::string_view kRebuildParameterWithState =
    "torch._utils._rebuild_parameter_with_state";
inline constexpr std::string_view kRebuildFromType =
    "torch._tensor._rebuild_from_type_v2";
inline constexpr std::string_view kGetLayout =
    "torch.serialization._get_layout";
} // namespace names

/// The layout of what several ranks have together (dtensor.h).
inline constexpr std::string_view kDTensorLayout = "DTensor";

/// A tensor that such a tensor is made of.
struct TensorPart {
  /// As PyTorch's method that gives it: "indices", "values", "crow_indices".
  /// Empty if the part is the tensor's whole content.
  std::string_view name = {};
  /// A tensor. Ownership: the tree's.
  const Value* value = nullptr;
};

inline constexpr std::string_view kMetaLayout = "meta";

/// A tensor of another layout.
struct LayoutTensor {
  /// "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc",
  /// "nested", "jagged", "meta", "wrapper" (a subclass without data), "device"
  /// (a device without storages, saved through the CPU), "DTensor".
  std::string_view layout = {};
  /// In the file's order.
  std::vector<TensorPart> parts = {};
  std::optional<DType> dtype = {};
  /// Shape of the whole; nothing where the parts decide it.
  std::optional<std::vector<std::int64_t>> sizes = {};
  /// Of one without parts.
  std::vector<std::int64_t> strides = {};
  bool requires_grad = false;
  /// Which part of it the file has: "rows 5..10 of 10, Shard(0)".
  std::string place = {};

  /// The part of that name, null if there is none.
  [[nodiscard]] const Tensor* part(std::string_view name) const;
};

/// Reads such a tensor; nothing for any other value, also a strided tensor.
/// A parameter of another layout, and one with Python attributes, are read
/// through.
std::optional<LayoutTensor> layout_tensor(const Value& value);

/// What a dict has under `key`; null for another value, and for a longer dict
/// than PyTorch makes for a tensor: many calls of a hostile file may share it,
/// and each is read.
const Value* short_field(const Value& dict, std::string_view key);

/// What a parameter of another layout is made of; null for any other value.
/// Ownership: the tree's.
const Value* parameter_data(const Value& value);

/// "sparse_coo float32 [3, 3]".
std::string describe(const LayoutTensor& tensor);

/// Compares the indices of a sparse tensor with its shape; reads them. PyTorch
/// does so only if asked and lets others point anywhere.
/// Errors: kCorrupt (E_SPARSE_INDEX); those of the storages.
Status check_indices(const LayoutTensor& tensor);

/// Every such tensor below `root`, each once.
std::vector<LayoutTensor> layout_tensors(const Value& root);

} // namespace lockstep::ckpt
