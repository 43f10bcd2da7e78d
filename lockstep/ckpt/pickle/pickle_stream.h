// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles and numbers that follow each other in a file, as PyTorch wrote them
// before it had archives. Of a file that is not mapped only the pickles are
// read, in growing pieces, since nothing says where one ends.
//   PickleStream stream(source, 0, limits);
//   auto magic = stream.next(nullptr);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {

/// Reads forward. Offsets in results and errors count from the start of the
/// source. Threads: one at a time.
class PickleStream {
 public:
  PickleStream(
      std::shared_ptr<ByteSource> source,
      std::uint64_t position,
      const Limits& limits)
      : source_(std::move(source)), position_(position), limits_(limits) {}

  /// The next pickle. Errors: as `read_pickle`.
  Result<PickleResult> next(PersistentIdHandler* handler);

  /// The next 4 or 8 bytes, signed. Errors: kCorrupt (E_TRUNCATED), kIo.
  Result<std::int32_t> next_i32();
  Result<std::int64_t> next_i64();

  /// Goes over `bytes`. Errors: kCorrupt (E_TRUNCATED).
  Status skip(std::uint64_t bytes);

  /// Units: bytes from the start of the source.
  [[nodiscard]] std::uint64_t position() const noexcept {
    return position_;
  }
  /// Units: bytes.
  [[nodiscard]] std::uint64_t remaining() const {
    return source_->size() - position_;
  }

 private:
  Result<ByteSpan> window();
  Result<std::uint64_t> next_number(std::size_t bytes);

  std::shared_ptr<ByteSource> source_;
  std::uint64_t position_;
  Limits limits_;
  std::vector<std::byte> scratch_;
};

} // namespace lockstep::ckpt
