// SPDX-License-Identifier: BSD-3-Clause
//
// Builds pickles opcode by opcode.
//   Pickle p; p.global("os", "system").text("ls").tuple(1).op('R').stop();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {

class Pickle {
 public:
  explicit Pickle(int protocol = 2) {
    if (protocol >= 2) {
      bytes_ = {'\x80', static_cast<char>(protocol)};
    }
  }
  Pickle& op(int code) {
    bytes_.push_back(static_cast<char>(code));
    return *this;
  }
  Pickle& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Pickle& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    }
    return *this;
  }
  Pickle& int4(std::int64_t value) {
    return op('J').number(static_cast<std::uint64_t>(value), 4);
  }
  Pickle& int8(std::int64_t value) {
    return op(0x8A).number(8, 1).number(static_cast<std::uint64_t>(value), 8);
  }
  Pickle& text(std::string_view value) {
    return op('X').number(value.size(), 4).raw(value);
  }
  Pickle& global(std::string_view module, std::string_view name) {
    return op('c').raw(module).raw("\n").raw(name).raw("\n");
  }
  Pickle& put(std::uint64_t index) {
    return op('q').number(index, 1);
  }
  Pickle& get(std::uint64_t index) {
    return op('h').number(index, 1);
  }
  Pickle& mark() {
    return op('(');
  }
  /// TUPLE1, TUPLE2 or TUPLE3.
  Pickle& tuple(int count) {
    return op(0x84 + count);
  }
  /// `('storage', torch.<type>, key, 'cpu', numel)` and BINPERSID.
  Pickle&
  storage(std::string_view type, std::string_view key, std::int64_t numel) {
    mark().text("storage").global("torch", type).text(key).text("cpu");
    return int8(numel).op('t').op('Q');
  }
  /// A tuple of integers.
  Pickle& ints(std::initializer_list<std::int64_t> values) {
    mark();
    for (const std::int64_t value : values) {
      int8(value);
    }
    return op('t');
  }
  Pickle& hooks() {
    return global("collections", "OrderedDict").op(')').op('R');
  }
  Pickle& stop() {
    return op('.');
  }
  [[nodiscard]] const std::string& bytes() const {
    return bytes_;
  }

 private:
  std::string bytes_;
};

inline Result<PickleResult> read(
    const Pickle& pickle,
    const Limits& limits = {}) {
  return read_pickle(as_byte_span(pickle.bytes()), nullptr, limits);
}

/// Detail of the error, "" if the pickle is read.
inline std::string detail_of(const Pickle& pickle, const Limits& limits = {}) {
  const auto result = read(pickle, limits);
  return result ? "" : result.error().detail;
}

} // namespace lockstep::ckpt
