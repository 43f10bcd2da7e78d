// SPDX-License-Identifier: BSD-3-Clause
//
// Changes the names of weights: what `lockstep ckpt strip`, `prefix` and
// `rename` do. `_metadata` follows the keys; collisions are refused; tensors
// are shared with the tree that comes in, which stays as it is.
//   auto edited = strip_prefix(file.root, {.prefix = "module."});
//   ckpt::save("bare.pth", edited->root);
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/tools/edit/key_report.h"

namespace lockstep::ckpt {

namespace internal {
class Regex;
} // namespace internal

/// How `strip_prefix` works.
struct StripOptions {
  /// Empty: the wrapper's prefix that all keys share, "module." (DataParallel
  /// and DistributedDataParallel) or "_orig_mod." (torch.compile).
  std::string prefix = {};
  /// Key of the weights; empty searches (weights.h).
  std::string weights_key = {};
  /// Also strip where some keys lack the prefix; those stay.
  bool partial = false;
};

/// Removes a prefix once from the front of the keys that all share it, so that
/// a layer that is called `module` keeps its name.
/// Errors: kMismatch (E_NO_PREFIX) if no key, or not every key, has it;
/// kInvalidArgument (E_KEY_COLLISION, E_KEY_EMPTY); as `weights_to_edit`.
Result<Edited> strip_prefix(const Value& root, const StripOptions& options);

/// How `add_prefix` works.
struct PrefixOptions {
  std::string prefix = "module.";
  /// Key of the weights; empty searches.
  std::string weights_key = {};
};

/// Puts a prefix in front of every key. Errors: kInvalidArgument for an empty
/// prefix; as `weights_to_edit`.
Result<Edited> add_prefix(const Value& root, const PrefixOptions& options);

/// `s/REGEX/REPLACEMENT/[g]` with any separator; REGEX is as in Perl and
/// Python, the replacement takes `\1` to `\9` and `\0` (or `&`) for the match.
class RenameRule {
 public:
  /// Errors: kInvalidArgument (E_RENAME_RULE).
  static Result<RenameRule> parse(std::string_view text);

  /// The key after the rule. Errors: kUnsafe (E_LIMIT) for a key on which the
  /// match grows without end; kInvalidArgument for a replacement that is no
  /// UTF-8.
  [[nodiscard]] Result<std::string> apply(const std::string& key) const;

 private:
  RenameRule() = default;

  std::shared_ptr<const internal::Regex> regex_;
  std::string replacement_;
  bool is_global_ = false;
};

/// Applies a rule to every key; the paths of `_metadata` follow the keys of
/// their modules. Errors: as `RenameRule`; kInvalidArgument (E_KEY_COLLISION,
/// E_KEY_EMPTY); kMismatch (E_NO_MATCH) if no key matches.
Result<Edited> rename_keys(
    const Value& root,
    const RenameRule& rule,
    std::string_view weights_key = {});

} // namespace lockstep::ckpt
