// SPDX-License-Identifier: BSD-3-Clause
//
// Counts allocations: by the address sanitizer's hook where there is one, else
// by an operator new of our own.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "fuzz/watch.h"

#ifdef __has_feature
#define LOCKSTEP_HAS_FEATURE(name) __has_feature(name)
#else
#define LOCKSTEP_HAS_FEATURE(name) 0
#endif

namespace {
std::atomic<std::uint64_t> allocated = 0;
} // namespace

#if defined(__SANITIZE_ADDRESS__) || LOCKSTEP_HAS_FEATURE(address_sanitizer)
#include <sanitizer/allocator_interface.h>

namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void* /*memory*/, std::size_t size) {
      allocated += size;
    },
    [](const volatile void* /*memory*/) {});
} // namespace
#else
// NOLINTBEGIN(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
// Inlined, they look like a mismatch to the compiler.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocated += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(
    void* memory,
    std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
#endif

namespace lockstep::fuzz {

std::uint64_t allocated_bytes() {
  return allocated;
}

} // namespace lockstep::fuzz
