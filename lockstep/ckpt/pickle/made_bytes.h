// SPDX-License-Identifier: BSD-3-Clause
//
// What a pickle makes of its bytes: a memoised text that is copied a thousand
// times takes a thousand times the memory that it takes in the file. All that
// the machine makes is counted here, before or as it is made.
//   MadeCounter made(bytes.size(), limits);
//   LOCKSTEP_TRY(made.add(bytes_of_call(name, args)));
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// The counter of one pickle, or its share in that of a file (`Limits::made`).
class MadeCounter {
 public:
  /// `size`: bytes in which the pickle is.
  MadeCounter(std::uint64_t size, const Limits& limits);
  /// What the pickle did not read allows nothing to the next one.
  void ends_at(std::uint64_t consumed);

  /// Errors: kUnsafe (E_LIMIT).
  Status add(std::uint64_t bytes) {
    count_.made += bytes;
    return count_.made <= allowed_ ? Status() : Status(refuse());
  }

 private:
  [[nodiscard]] Error refuse() const;

  std::uint64_t size_;
  // Kept alive by the limits.
  MadeBytes own_ = {};
  MadeBytes& count_;
  std::uint64_t extra_;
  std::uint64_t allowed_;
};

/// A value on the stack, in a list or in a dict. Units: bytes.
inline constexpr std::uint64_t kValueBytes = sizeof(Value);

/// What a value takes by itself, if nobody else holds it: its node and its
/// text, without its elements. Units: bytes.
std::uint64_t bytes_of_node(const Value& value);

/// What a call of `name` copies of its arguments. Units: bytes.
std::uint64_t bytes_of_call(std::string_view name, const Tuple& args);

/// What a copy of `value` takes, those of a tuple's items, too: a persistent
/// id, a state. Units: bytes.
std::uint64_t bytes_of_copy(const Value& value);

} // namespace lockstep::ckpt::internal
