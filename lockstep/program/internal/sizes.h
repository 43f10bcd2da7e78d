// SPDX-License-Identifier: BSD-3-Clause
//
// Which sizes the inputs of a program may have: fixed ones, and symbols that
// agree everywhere and lie in their ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::program {

/// One dimension: `factor`, which is positive, times a symbol and `offset`;
/// without a symbol `offset` alone.
struct SizeRule {
  std::int64_t factor = 0;
  std::int64_t offset = 0;
  /// Place in `InputSizes::symbols`; with a factor of 0 it says nothing.
  std::size_t symbol = 0;
  /// The expression is not of that form: any size is taken.
  bool is_free = false;
};

struct SymbolRule {
  std::string name = {};
  ckpt::ExportedRange range = {};
};

/// Compiled once, for all inputs.
class InputSizes {
 public:
  /// Errors: throws kCorrupt (E_PROGRAM) for a tensor without sizes.
  explicit InputSizes(const ckpt::ExportedModel& model);

  /// Compares the sizes of the user's inputs, in the signature's order;
  /// `names[i]` is what messages call the i-th.
  /// Errors: throws kMismatch (E_PROGRAM_INPUT).
  void check(
      const std::vector<c10::IValue>& inputs,
      const std::vector<std::string>& names) const;

  /// The rules of the i-th input; nothing if it is no tensor.
  [[nodiscard]] const std::optional<std::vector<SizeRule>>& rules(
      std::size_t input) const {
    return inputs_[input];
  }

 private:
  SizeRule rule_of(
      const ckpt::ExportedSize& size,
      const ckpt::ExportedModel& model);
  void check_size(
      const SizeRule& rule,
      std::int64_t size,
      const std::string& place,
      std::vector<std::optional<std::int64_t>>& bound) const;

  std::vector<std::optional<std::vector<SizeRule>>> inputs_ = {};
  std::vector<SymbolRule> symbols_ = {};
  /// Their places by name.
  std::map<std::string, std::size_t, std::less<>> places_ = {};
};

} // namespace lockstep::program
