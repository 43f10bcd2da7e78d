// SPDX-License-Identifier: BSD-3-Clause
//
// Typed access to a saved dict. Every failure throws kMismatch and names the
// key, so that a file of something else gives a clear error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::internal {

/// Throws kMismatch.
[[noreturn]] void mismatch(std::string message, std::string hint = {});

/// Reads one dict. Ownership: the value must outlive the reader.
class StateReader {
 public:
  /// `what` names the dict in messages: "scheduler state".
  StateReader(const ckpt::Value& state, std::string_view what);

  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] const ckpt::Value& at(std::string_view key) const;
  [[nodiscard]] const ckpt::Dict& dict(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  /// Items of a list or tuple.
  [[nodiscard]] const std::vector<ckpt::Value>& items(
      std::string_view key) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const;
  /// As many numbers as there are parameter groups.
  [[nodiscard]] std::vector<double> per_group(
      std::string_view key,
      std::size_t num_groups) const;

  /// Throws kMismatch: "KEY of WHAT: expected WANT, got TYPE".
  [[noreturn]] void refuse(
      std::string_view key,
      std::string_view want,
      const ckpt::Value& got) const;

 private:
  const ckpt::Value& state_;
  std::string what_;
};

} // namespace lockstep::internal
