// SPDX-License-Identifier: BSD-3-Clause
//
// Open files of the real file system, for real_fs.cpp only. Opening never
// blocks: a FIFO is opened with O_NONBLOCK, looked at, and refused.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/descriptor.h"

namespace lockstep::internal {

/// Runs a system call again while a signal interrupts it.
template <class Call>
auto retry(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) {
    result = call();
  }
  return result;
}

/// The error of `errno` if `result` is -1.
Status checked(int result, std::string_view op, const std::string& path);

/// Opens with O_CLOEXEC and O_NOCTTY.
Result<Descriptor>
open_path(const std::string& path, int flags, std::uint32_t mode = 0);

/// A regular file that is open for reading.
struct OpenFile {
  Descriptor descriptor;
  std::uint64_t size = 0;
};

/// Errors: as `open_path`; kIo (E_NOT_REGULAR).
Result<OpenFile> open_regular(const std::string& path);

/// The parts of `FileSystem`'s results that hold a descriptor. `missing_lock`:
/// what `WritableFile::missing_lock` tells.
std::unique_ptr<ReadableFile> make_readable(OpenFile file, std::string path);
std::unique_ptr<WritableFile> make_writable(
    Descriptor descriptor,
    std::string path,
    std::optional<Error> missing_lock = {});

} // namespace lockstep::internal
