// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::shm {
namespace {

Error refused(std::string_view what) {
  return {
      .code = ErrorCode::kUnavailable,
      .op = "dist.shm",
      .message = format("{}: {}", what, std::system_category().message(errno)),
      .detail = "E_BACKEND"};
}

/// `take(file)` makes it as large as it is to be; 0: it has.
template <class Take>
Result<Descriptor> create(std::size_t bytes, const Take& take) {
  Descriptor file = memory_file("lockstep");
  rlimit largest = {};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && bytes > largest.rlim_cur) {
    errno = EFBIG; // a larger file would be a signal, not an error
    file.reset();
  }
  if (!file || take(file.get()) != 0) {
    return refused(format("no {} of shared memory", human_bytes(bytes)));
  }
  return file;
}

} // namespace

// Takes the memory now: later its lack would be a signal, not an error.
Result<Descriptor> create_segment(std::size_t bytes) {
  return create(bytes, [&](int file) {
    return ::fallocate(file, 0, 0, static_cast<off_t>(bytes));
  });
}

Result<Descriptor> create_sparse_segment(std::size_t bytes) {
  return create(bytes, [&](int file) {
    return ::ftruncate(file, static_cast<off_t>(bytes));
  });
}

Result<Descriptor> open_segment(pid_t pid, int number) {
  const std::string path = format("/proc/{}/fd/{}", pid, number);
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    return refused(path);
  }
  return file;
}

Mapping::Mapping(Mapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
  }
}

Result<Mapping>
Mapping::map(const Descriptor& file, std::size_t bytes, Pages pages) {
  void* const start = ::mmap(
      nullptr,
      bytes,
      PROT_READ | PROT_WRITE,
      pages == Pages::kNow ? MAP_SHARED | MAP_POPULATE : MAP_SHARED,
      file.get(),
      0);
  if (start == MAP_FAILED) {
    return refused("shared memory cannot be mapped");
  }
  Mapping mapping;
  mapping.bytes_ = {static_cast<std::byte*>(start), bytes};
  return mapping;
}

Result<Descriptor> open_process(pid_t pid) {
  Descriptor process = process_handle(pid);
  if (!process) {
    return refused(format("process {} cannot be watched", pid));
  }
  return process;
}

} // namespace lockstep::dist::shm
