// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/gunzip.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <libdeflate.h>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kHugePage = 2ULL << 20;
// No deflate stream is shorter than this fraction of what it decodes to.
constexpr std::uint64_t kMaxRatio = 1032;
constexpr std::string_view kReload =
    "fetch the file again, or reinstall the package it came from";

[[noreturn]] void
bad_gzip(std::string message, const std::string& path, std::uint64_t offset) {
  raise(
      {.code = ErrorCode::kCorrupt,
       .op = "data.gunzip",
       .message = std::move(message),
       .hint = std::string(kReload),
       .path = path,
       .offset = offset,
       .detail = "E_GZIP"});
}

// Large pages: the page faults of 47 MB of fresh memory cost as much as a
// tenth of the decoding.
std::shared_ptr<std::uint8_t> allocate(
    std::uint64_t bytes,
    const std::string& path) {
  const std::uint64_t rounded = (bytes / kHugePage + 1) * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (memory == nullptr) {
    raise(
        {.code = ErrorCode::kIo,
         .op = "data.gunzip",
         .message = format("no memory for {}", human_bytes(rounded)),
         .path = path});
  }
  static_cast<void>(::madvise(memory, rounded, MADV_HUGEPAGE));
  return {static_cast<std::uint8_t*>(memory), std::free};
}

// The size that the last member declares; a hint only, as it may be forged.
std::uint64_t declared_size(ByteSpan input) {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(input.last(4)[i]);
    size |= byte << (8 * i);
  }
  return size;
}

bool is_padding(ByteSpan bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) {
    return b == std::byte{0};
  });
}

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};

// Decodes member after member into a buffer that grows when it must.
class Gunzip {
 public:
  Gunzip(ByteSpan input, const std::string& path, std::uint64_t max_bytes)
      : input_(input),
        path_(path),
        limit_(std::min<std::uint64_t>(max_bytes, input.size() * kMaxRatio)),
        capacity_(std::clamp<std::uint64_t>(declared_size(input), 1, limit_)),
        buffer_(allocate(capacity_, path)),
        decompressor_(libdeflate_alloc_decompressor()) {}

  SharedBytes run() {
    do {
      decode_member();
    } while (!at_end());
    return {.data = std::move(buffer_), .size = made_};
  }

 private:
  void decode_member() {
    const ByteSpan rest = input_.subspan(used_);
    for (;;) {
      std::size_t used = 0;
      std::size_t made = 0;
      const libdeflate_result result = libdeflate_gzip_decompress_ex(
          decompressor_.get(),
          rest.data(),
          rest.size(),
          buffer_.get() + made_,
          capacity_ - made_,
          &used,
          &made);
      if (result == LIBDEFLATE_SUCCESS) {
        used_ += used;
        made_ += made;
        return;
      }
      if (result != LIBDEFLATE_INSUFFICIENT_SPACE) {
        bad_gzip(
            format(
                "gzip stream is cut or damaged; expected a whole stream with "
                "its checksum, got {} bytes that do not decode",
                rest.size()),
            path_,
            used_);
      }
      grow();
    }
  }

  void grow() {
    if (capacity_ >= limit_) {
      raise(
          {.code = ErrorCode::kUnsafe,
           .op = "data.gunzip",
           .message = format(
               "gzip stream decodes to more than {}",
               human_bytes(limit_)),
           .path = path_,
           .detail = "E_LIMIT"});
    }
    const std::uint64_t capacity = std::min(2 * capacity_ + kHugePage, limit_);
    auto larger = allocate(capacity, path_);
    std::memcpy(larger.get(), buffer_.get(), made_);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  }

  // Zeros after a member are padding, as for the gzip program.
  [[nodiscard]] bool at_end() const {
    const ByteSpan rest = input_.subspan(used_);
    if (is_padding(rest)) {
      return true;
    }
    if (!is_gzip(rest)) {
      bad_gzip(
          format("{} foreign bytes follow the gzip stream", rest.size()),
          path_,
          used_);
    }
    return false;
  }

  ByteSpan input_;
  const std::string& path_;
  std::uint64_t limit_;
  std::uint64_t capacity_;
  std::shared_ptr<std::uint8_t> buffer_;
  std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor_;
  std::uint64_t used_ = 0;
  std::uint64_t made_ = 0;
};

} // namespace

bool is_gzip(ByteSpan bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} &&
         bytes[1] == std::byte{0x8B};
}

SharedBytes
gunzip(ByteSpan input, const std::string& path, std::uint64_t max_bytes) {
  constexpr std::size_t kSmallest = 18; // header and trailer
  if (input.size() < kSmallest) {
    bad_gzip(
        format(
            "gzip stream is cut; expected {} bytes or more, got {}",
            kSmallest,
            input.size()),
        path,
        input.size());
  }
  return Gunzip(input, path, max_bytes).run();
}

} // namespace lockstep
