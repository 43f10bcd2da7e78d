// SPDX-License-Identifier: BSD-3-Clause
#include "cli/tensor_export.h"

#include <unistd.h>

#include "cli/output.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::cli {

Status print_csv(const ckpt::Tensor& tensor, const ckpt::Limits& limits) {
  LOCKSTEP_TRY(ckpt::internal::check_whole_bytes(tensor.dtype));
  LOCKSTEP_TRY(ckpt::check_expansion(tensor, limits.max_expanded_bytes));
  const std::size_t size = ckpt::dtype_info(tensor.dtype).size;
  const bool is_table = tensor.sizes.size() > 1;
  const std::int64_t columns = is_table ? tensor.sizes.back() : 1;
  std::int64_t column = 0;
  return ckpt::for_each_block(tensor, [&](ByteSpan block) {
    std::string text;
    for (std::size_t at = 0; at + size <= block.size(); at += size) {
      text += ckpt::element_text(&block[at], tensor.dtype);
      column = column + 1 == columns ? 0 : column + 1;
      text += column == 0 ? '\n' : ',';
    }
    print(text);
    return Status();
  });
}

Status print_npy(const ckpt::Tensor& tensor, const ckpt::Limits& limits) {
  if (::isatty(STDOUT_FILENO) != 0) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.show",
        .message = "an npy file is not readable on a terminal",
        .hint = "redirect it: --npy > tensor.npy"};
  }
  LOCKSTEP_TRY(ckpt::check_expansion(tensor, limits.max_expanded_bytes));
  return ckpt::export_npy(tensor, [](ByteSpan block) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    print({reinterpret_cast<const char*>(block.data()), block.size()});
    return Status();
  });
}

} // namespace lockstep::cli
