// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/names.h"

#include <algorithm>
#include <array>

#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/pickle/dangerous_names.h"
#include "lockstep/ckpt/pickle/numpy_scalar.h"
#include "lockstep/ckpt/pickle/rebuild_tensor.h"

namespace lockstep::ckpt {
namespace {

using Row = NameRow;
using enum Trust;
using enum Written;

// clang-format off
constexpr std::array kNames{
    Row{"collections.OrderedDict", kSafe, call_ordered_dict},
    Row{"collections.Counter", kSafe, call_counter},
    Row{"builtins.set", kSafe, call_set},
    Row{"builtins.complex", kSafe, call_complex},
    Row{"_codecs.encode", kSafe, call_encode},
    Row{"torch.Size", kSafe, call_size},
    Row{"torch.device", kSafe, call_device},
    Row{"torch.nn.parameter.Parameter", kSafe, call_parameter},
    Row{"torch._utils._rebuild_tensor", kSafe, rebuild_tensor},
    Row{"torch._utils._rebuild_tensor_v2", kSafe, rebuild_tensor_v2},
    Row{"torch._utils._rebuild_tensor_v3", kSafe, rebuild_tensor_v3},
    Row{names::kRebuildParameter, kSafe, rebuild_parameter, kAsCall},
    Row{names::kRebuildParameterWithState, kSafe, rebuild_parameter_with_state, kAsCall},
    Row{names::kRebuildFromType, kSafe, rebuild_from_type, kAsCall},
    Row{"torch._utils._rebuild_qtensor", kSafe, rebuild_qtensor},
    Row{names::kRebuildSparse, kSafe, rebuild_sparse, kAsCall},
    Row{"builtins.bytearray", kSafe, nullptr, kAsCall},
    Row{names::kGetLayout, kSafe, nullptr, kAsCall},
    Row{names::kRebuildMeta, kSafe, nullptr, kAsCall},
    Row{names::kRebuildNested, kSafe, nullptr, kAsCall},
    Row{names::kRebuildDevice, kSafe, nullptr, kAsCall},
    Row{names::kRebuildDeviceFromNumpy, kSafe, nullptr, kAsCall},
    Row{names::kRebuildJagged, kSafe, nullptr, kAsCall},
    Row{"torch.Tensor", kSafe},
    Row{"torch.per_tensor_affine", kSafe},
    Row{"torch.per_tensor_symmetric", kSafe},
    Row{"torch.per_channel_affine", kSafe},
    Row{"torch.per_channel_symmetric", kSafe},
    Row{"torch.per_channel_affine_float_qparams", kSafe},
    Row{"torch.storage.TypedStorage", kSafe},
    Row{names::kRebuildWrapper, kSafe},
    Row{"torch.nested._internal.nested_tensor.NestedTensor", kSafe},
    Row{"torch._dynamo.decorators._DimRange", kSafe, nullptr, kAsInstance},
    Row{"builtins.bytes", kUnknown, call_bytes},
    Row{"torch._tensor._rebuild_from_type", kUnknown, rebuild_from_type},
    Row{"torch._dynamo.eval_frame.OptimizedModule", kUnknown, call_optimized_module},
    Row{"torch.fx.graph_module.reduce_graph_module", kUnknown, call_graph_module},
    Row{"joblib.numpy_pickle.NumpyArrayWrapper", kDataOnly},
    Row{"torch.jit._pickle.restore_type_tag", kDataOnly, call_restore_type_tag},
    Row{"torch.jit._pickle.build_intlist", kDataOnly, call_typed_list},
    Row{"torch.jit._pickle.build_doublelist", kDataOnly, call_typed_list},
    Row{"torch.jit._pickle.build_boollist", kDataOnly, call_typed_list},
    Row{"torch.jit._pickle.build_tensorlist", kDataOnly, call_typed_list},
    Row{names::kRebuildSparseCsr, kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.Metadata", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.TensorStorageMetadata", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.BytesStorageMetadata", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.TensorProperties", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.ChunkStorageMetadata", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.MetadataIndex", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata.StorageMeta", kDataOnly},
    Row{"torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING", kDataOnly, nullptr, kNever, "TORCH_"},
    Row{"torch.distributed.checkpoint.filesystem._StorageInfo", kDataOnly},
    Row{"torch.distributed.checkpoint.filesystem._StoragePrefix", kDataOnly},
    Row{"numpy.dtype", kDataOnly},
    Row{"numpy.ndarray", kDataOnly},
    Row{"numpy._core.multiarray._reconstruct", kDataOnly},
    Row{"numpy._core.multiarray.scalar", kDataOnly, call_numpy_scalar},
    Row{"numpy._core.numeric._frombuffer", kDataOnly},
    Row{"pathlib.PosixPath", kDataOnly},
    Row{"pathlib.WindowsPath", kDataOnly},
    Row{"pathlib.PurePosixPath", kDataOnly},
    Row{"pathlib.PureWindowsPath", kDataOnly},
    Row{"pathlib._local.PosixPath", kDataOnly},
    Row{"pathlib._local.WindowsPath", kDataOnly},
    Row{"pathlib._local.PurePosixPath", kDataOnly},
    Row{"pathlib._local.PureWindowsPath", kDataOnly},
};
// clang-format on

} // namespace

const NameRow* find_name(std::string_view name) {
  const auto* const row = std::ranges::find(kNames, name, &NameRow::name);
  return row == kNames.end() ? nullptr : row;
}

bool is_enum_member(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return false;
  }
  const NameRow* row = find_name(name.substr(0, dot));
  return row != nullptr && !row->members.empty() &&
         name.substr(dot + 1).starts_with(row->members);
}

bool reaches_the_system(std::string_view name) {
  return name.starts_with('?') || name.find(':') != std::string_view::npos ||
         is_dangerous_path(name);
}

} // namespace lockstep::ckpt
