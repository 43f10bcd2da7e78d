// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/cuda_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include <ATen/Version.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {

void load_cuda_library() {
  Dl_info where{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its interface
  const auto* const of_libtorch =
      reinterpret_cast<const void*>(&at::show_config);
  if (::dladdr(of_libtorch, &where) == 0 || where.dli_fname == nullptr) {
    return;
  }
  const std::filesystem::path file =
      (std::filesystem::path(where.dli_fname).parent_path() /
       "libtorch_cuda.so")
          .lexically_normal();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return;
  }
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) ==
      nullptr) {
    const Error failure{
        .code = ErrorCode::kUnavailable,
        .op = "torch.cuda",
        .message =
            format("no GPU: the library does not load: {}", loader_error()),
        .hint = "install the packages that this torch requires",
        .path = file};
    std::fprintf(stderr, "%s\n", to_string(failure).c_str());
  }
}

} // namespace lockstep::cli_train
