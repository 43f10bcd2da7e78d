// SPDX-License-Identifier: BSD-3-Clause
//
// Operators of LibTorch that Lockstep replaces in the whole process: which
// (replaced_operators.cpp has the one table), and how they are put in place and
// taken away.
//   OperatorSwitch random_operators{kRandomOperators, &add_kernels};
//   random_operators.turn_on();   // ours
//   random_operators.turn_off();  // LibTorch's again
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/DispatchKey.h>
#include <torch/library.h>

namespace lockstep {

/// The operators that one part of Lockstep replaces, or calls by name.
struct OperatorSet {
  /// What they are for, as a message names it.
  std::string_view purpose = {};
  /// Signatures for which our kernels were written, without default values.
  std::span<const std::string_view> signatures = {};
  /// For what they are replaced; none: they are called only.
  std::span<const c10::DispatchKey> keys = {};
  /// Of LibTorch's libraries; "_" is a fallback for all operators.
  const char* library = "aten";
};

// What each is for says its row.
extern const OperatorSet kRandomOperators;
extern const OperatorSet kConvolutionOperators;
extern const OperatorSet kBatchNormOperators;
extern const OperatorSet kSyncBatchNormOperators;
extern const OperatorSet kStandInOperators;
extern const OperatorSet kInnerProductOperators;

/// All of them.
std::span<const OperatorSet* const> operator_sets();

/// In which operators of `set` this LibTorch differs from what our kernels were
/// written for: "aten::relu: expected '...', got '...'; ..."; empty if in none.
std::string signature_differences(const OperatorSet& set);

/// While it lives, operators are computed by kernels of ours.
/// Threads: construct and destroy while no other thread calls these operators.
class ReplacedOperators {
 public:
  /// `add` gets a library for each key of `set`, and adds a kernel for each
  /// signature.
  /// Errors: throws kUnsupported (E_OPERATORS) if LibTorch's operators are not
  /// those of `set`.
  ReplacedOperators(const OperatorSet& set, void (*add)(torch::Library&));

 private:
  std::vector<torch::Library> libraries_ = {};
};

/// ReplacedOperators of the process. Nothing is taken away at exit: other
/// threads may be inside one of the kernels then.
class OperatorSwitch {
 public:
  constexpr OperatorSwitch(const OperatorSet& set, void (*add)(torch::Library&))
      : set_(set), add_(add) {}
  OperatorSwitch(const OperatorSwitch&) = delete;
  OperatorSwitch& operator=(const OperatorSwitch&) = delete;
  ~OperatorSwitch() = default;

  /// Further calls do nothing. Threads, Errors: as `ReplacedOperators`.
  void turn_on();
  /// LibTorch's own kernels again. Threads: as `ReplacedOperators`.
  void turn_off();

 private:
  const OperatorSet& set_;
  void (*add_)(torch::Library&);
  std::mutex mutex_;
  ReplacedOperators* replaced_ = nullptr;
};

} // namespace lockstep
