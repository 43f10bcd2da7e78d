// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

bool may_be_infinite(DType dtype) {
  const std::string_view name = dtype_info(dtype).name;
  return name.find("float") != std::string_view::npos ||
         name.starts_with("complex");
}

Status count(const Tensor& tensor, NotFinite& row) {
  const std::size_t size = dtype_info(tensor.dtype).size;
  return for_each_block(tensor, [&](ByteSpan block) {
    for (std::size_t at = 0; at + size <= block.size(); at += size) {
      const Finiteness found = finiteness_of(&block[at], tensor.dtype);
      row.nan_count += found == Finiteness::kNan ? 1 : 0;
      row.inf_count += found == Finiteness::kInf ? 1 : 0;
    }
    return Status();
  });
}

} // namespace

Result<DeepCheck> check_elements(const Value& root, const Limits& limits) {
  DeepCheck result;
  // The digest comes first: it refuses views that repeat without end.
  LOCKSTEP_ASSIGN(result.digest, digest(root, limits));
  Status first;
  LOCKSTEP_TRY(
      for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
        result.elements += static_cast<std::uint64_t>(tensor.numel());
        if (!first || !has_bytes(tensor) || !may_be_infinite(tensor.dtype)) {
          return;
        }
        NotFinite row{.name = name};
        first = count(tensor, row);
        if (row.nan_count + row.inf_count != 0) {
          result.not_finite.push_back(std::move(row));
        }
      }));
  LOCKSTEP_TRY(std::move(first));
  return result;
}

} // namespace lockstep::ckpt
