// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes that are read on demand, as from a file that is not mapped; counts how
// often and how many.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"

namespace lockstep::ckpt {

class CountedSource final : public ByteSource {
 public:
  explicit CountedSource(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const override {
    return bytes_.size();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    ++reads;
    bytes_read += length;
    const ByteSpan part = as_byte_span(bytes_).subspan(offset, length);
    scratch.assign(part.begin(), part.end());
    return ByteSpan(scratch);
  }
  [[nodiscard]] bool is_stable() const override {
    return false;
  }

  int reads = 0;
  std::uint64_t bytes_read = 0;

 private:
  std::string bytes_;
};

} // namespace lockstep::ckpt
