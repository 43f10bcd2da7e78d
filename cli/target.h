// SPDX-License-Identifier: BSD-3-Clause
//
// Where a command writes. The one rule: what is there stays, unless --force
// says otherwise, and a file that the command reads is written over only where
// nothing changes but what was asked for. No command saves but through here.
//   LOCKSTEP_ASSIGN(const auto target, CheckedTarget::check(args.target,
//   rule)); LOCKSTEP_ASSIGN(const Written written, target.save(root));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/json.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// Arguments of every command that writes.
struct Target {
  std::string path = {};
  /// Replace what is there.
  bool force = false;
  /// Check and say everything, write nothing.
  bool dry_run = false;
};

/// Declares --force and --dry-run. A command with --force is one that writes:
/// the table of tests/cli/target_test.cpp needs a row for it.
void add_target_flags(CLI::App& app, Target& target);

/// `ckpt::lock_for_edit` of `input` if the target takes its place: null if the
/// target is another file, and in a dry run, which keeps nobody away.
/// Errors: kIo (E_LOCKED, E_PERMISSION).
Result<std::unique_ptr<PathLock>> lock_own_input(
    const Target& target,
    const std::string& input);

/// What may happen to a file that the command itself reads.
enum class OwnInput {
  /// It may change in place: strip, rename, drop.
  kMayChange,
  /// Only with --force: most of it goes. Pick.
  kNeedsForce,
  /// It stays, also with --force: the result is something else.
  kStays,
};

/// What a command writes.
struct TargetRule {
  /// Name of the writer: "pt".
  std::string format = {};
  /// The user named the format: the ending of the path may say another.
  bool is_format_asked = false;
  /// Files that the command reads; "-" for standard input.
  std::vector<std::string> inputs = {};
  OwnInput own_input = OwnInput::kStays;
  /// What would be left of an input: "the optimizer state alone".
  std::string_view result = {};
  /// Units: bytes in one file; 0 for one file (SaveOptions). With shards, an
  /// input that is the target goes, so that `kMayChange` needs --force.
  std::uint64_t shard_bytes = 0;
  /// What views may repeat, and with what the new file is read back.
  ckpt::Limits limits = {};
  /// `lock_own_input` of the target; outlives it.
  const PathLock* lock = nullptr;
};

/// What was written, or would have been in a dry run.
struct Written {
  std::string path = {};
  std::string format = {};
  std::uint64_t tensors = 0;
  /// Units: bytes of all files; 0 in a dry run.
  std::uint64_t bytes = 0;
  bool is_dry_run = false;
};

/// Names of `records`, which lie beside the value of a file that is read, if
/// `writer` has no place for them.
std::vector<std::string> records_without_place(
    const std::vector<ckpt::ExtraRecord>& records,
    const ckpt::FormatWriter& writer);

/// "left out: record notes.txt; npz has no place for it" and a line feed; ""
/// without records.
std::string left_out_text(
    const std::vector<std::string>& records,
    std::string_view format_name);

/// "a, b", with escapes.
std::string names_text(const std::vector<std::string>& names);

/// "wrote out.npz: 122 tensors, 42.7 MiB (npz)" and a line feed.
std::string wrote_text(const Written& written);

/// The same facts: `output`, `format`, `written`, `tensors`, `bytes`.
void set_written(Json& result, const Written& written);

/// A target that follows the rule.
class CheckedTarget {
 public:
  /// Errors: kInvalidArgument (E_EXISTS, E_SAME_FILE, E_ENDING,
  /// E_NOT_REGULAR), kNotFound for a missing folder.
  static Result<CheckedTarget> check(Target target, TargetRule rule);

  /// Saves a tree made of `file`, whose byte order stays unknown if it is.
  /// Errors: as `ckpt::save`; kInvalidArgument (E_EXISTS) for a file that is
  /// there now, a shard for example.
  [[nodiscard]] Result<Written> save(
      const ckpt::Checkpoint& file,
      const ckpt::Value& root,
      ckpt::SaveOptions options = {}) const;

  /// That of the rule.
  [[nodiscard]] const std::string& format() const noexcept {
    return rule_.format;
  }

  /// The tree of `file`, the rule's first input, after an edit.
  /// Errors: as `ckpt::rewrite`.
  [[nodiscard]] Result<Written> rewrite(
      const ckpt::Checkpoint& file,
      const ckpt::Value& root) const;

  /// For those who save themselves, then call `written`.
  [[nodiscard]] ckpt::SaveOptions save_options() const;
  /// The disk, or one that keeps nothing in a dry run. Ownership: this
  /// object's.
  [[nodiscard]] FileSystem& fs() const;
  [[nodiscard]] Result<Written> written(std::uint64_t tensors) const;

 private:
  CheckedTarget(Target target, TargetRule rule, bool is_own_input);

  Target target_;
  TargetRule rule_;
  /// The target is a file that the command reads.
  bool is_own_input_ = false;
  /// Null unless it is a dry run.
  std::shared_ptr<FileSystem> nowhere_ = {};
};

} // namespace lockstep::cli
