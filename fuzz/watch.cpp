// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/watch.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace lockstep::fuzz {
namespace {

// Of everything that a target does with an input: several loads, walks, copies.
constexpr std::uint64_t kReadPerByte = 64;
constexpr std::uint64_t kFreeRead = 4 << 20;
constexpr std::uint64_t kAllocatedPerByte = 2048;
constexpr std::uint64_t kFreeAllocated = 64 << 20;

void check(std::string_view what, std::uint64_t count, std::uint64_t most) {
  if (count > most) {
    std::fprintf(
        stderr,
        "%llu bytes %.*s; expected at most %llu\n",
        static_cast<unsigned long long>(count),
        static_cast<int>(what.size()),
        what.data(),
        static_cast<unsigned long long>(most));
    std::abort();
  }
}

} // namespace

class Watch::Source final : public ckpt::ByteSource {
 public:
  explicit Source(ByteSpan bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const override {
    return bytes_.size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    if (offset > bytes_.size() || length > bytes_.size() - offset) {
      return Error{
          .code = ErrorCode::kCorrupt,
          .op = "fuzz.read",
          .message = "outside of the input",
          .detail = "E_BOUNDS"};
    }
    read += length;
    const ByteSpan part = bytes_.subspan(offset, length);
    scratch.assign(part.begin(), part.end());
    return ByteSpan(scratch);
  }
  [[nodiscard]] bool is_stable() const override {
    return false;
  }

  std::uint64_t read = 0;

 private:
  ByteSpan bytes_;
};

Watch::Watch(ByteSpan input)
    : source_(std::make_shared<Source>(input)),
      allocated_before_(allocated_bytes()) {
  limits_.max_made_bytes = 1 << 16;
  limits_.max_expanded_bytes = 1 << 16;
  limits_.max_steps = 1 << 14;
}

Watch::~Watch() {
  const std::uint64_t size = source_->size();
  check("read", source_->read, kFreeRead + kReadPerByte * size);
  check(
      "allocated",
      allocated_bytes() - allocated_before_,
      kFreeAllocated + kAllocatedPerByte * size);
}

std::shared_ptr<ckpt::ByteSource> Watch::source() const {
  return source_;
}

} // namespace lockstep::fuzz
