// SPDX-License-Identifier: BSD-3-Clause
#include "cli/target.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/dry_run_fs.h"
#include "cli/file_warnings.h"
#include "cli/input_files.h"
#include "cli/output.h"
#include "cli/target_format.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

Error refused(
    std::string message,
    std::string hint,
    const std::string& path,
    std::string detail) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = std::move(message),
      .hint = std::move(hint),
      .path = path,
      .detail = std::move(detail)};
}

bool is_empty_folder(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_empty(path, code);
}

// Several files never are the one that is read: it goes when they are there.
OwnInput own_input(const TargetRule& rule) {
  return rule.own_input == OwnInput::kMayChange && rule.shard_bytes != 0
             ? OwnInput::kNeedsForce
             : rule.own_input;
}

Status check_own_input(const Target& target, const TargetRule& rule) {
  const OwnInput own = own_input(rule);
  if (own == OwnInput::kMayChange ||
      (own == OwnInput::kNeedsForce && target.force)) {
    return {};
  }
  return refused(
      format("{} would replace the input file", rule.result),
      own == OwnInput::kNeedsForce
          ? "name another file to write; --force replaces this one"
          : "name another file to write",
      target.path,
      "E_SAME_FILE");
}

Status check_folder(const std::string& path) {
  LOCKSTEP_ASSIGN(const std::string place, real_fs().resolve(path));
  const std::string folder = parent_directory(place);
  const auto info = real_fs().stat(folder);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return {};
  }
  return Error{
      .code = ErrorCode::kNotFound,
      .op = "cli.args",
      .message = format("the folder '{}' does not exist", escape(folder, 200)),
      .hint = "create it first, or name another place",
      .path = path};
}

Error output_exists(const std::string& path, bool is_folder) {
  return refused(
      is_folder ? "the output folder is not empty" : "the output file exists",
      "name another one, or add --force to replace it",
      path,
      "E_EXISTS");
}

// What is at the path, which is not an input.
Status check_present(
    const Target& target,
    const std::string& path,
    FileInfo::Kind kind,
    bool writes_folder) {
  const bool is_folder = kind == FileInfo::Kind::kDirectory;
  if (is_folder && !writes_folder) {
    return refused(
        "this is the name of a folder",
        "name a file in it",
        path,
        "E_NOT_REGULAR");
  }
  if (!is_folder && kind != FileInfo::Kind::kFile) {
    return refused(
        "the target is not a regular file",
        "name a file",
        path,
        "E_NOT_REGULAR");
  }
  if (!is_folder && writes_folder) {
    return refused(
        "a file has the name of the folder to write",
        "name another folder",
        path,
        "E_EXISTS");
  }
  if (target.force || (is_folder && is_empty_folder(path))) {
    return {};
  }
  return output_exists(path, is_folder);
}

Status
check_path(const Target& target, const std::string& path, bool writes_folder) {
  const auto info = real_fs().stat(path);
  if (info) {
    return check_present(target, path, info->kind, writes_folder);
  }
  return info.error().code == ErrorCode::kNotFound ? check_folder(path)
                                                   : Status(info.error());
}

// The index of several files; empty if there is one.
std::string index_path(const Target& target, const TargetRule& rule) {
  return rule.shard_bytes == 0 ? ""
                               : ckpt::format_to_write(rule.format)
                                     ->writer.index_path(target.path);
}

// Where the file lies that `load` reads back.
std::string
written_path(const Target& target, const TargetRule& rule, FileSystem& fs) {
  const std::string index = index_path(target, rule);
  return !index.empty() && fs.stat(index) ? index : target.path;
}

// What only the save itself could know: a shard of this name is there, or
// somebody else has made the output meanwhile.
Status explained(Status saved) {
  return !saved && saved.error().detail == "E_EXISTS"
             ? output_exists(saved.error().path, false)
             : std::move(saved);
}

// Of those that `format` has a place for.
Result<std::uint64_t> tensor_count(
    const ckpt::Value& root,
    std::string_view format) {
  std::uint64_t count = 0;
  const ckpt::TensorVisitor add =
      [&count](const std::string& /*name*/, const ckpt::Tensor& /*tensor*/) {
        ++count;
      };
  const bool keeps_tree =
      ckpt::format_to_write(format)->writer.changed_values == nullptr;
  LOCKSTEP_TRY(
      keeps_tree ? ckpt::for_each_tensor(root, add)
                 : ckpt::for_each_named_tensor(root, add));
  return count;
}

// Nobody is kept away from it then.
Result<std::unique_ptr<PathLock>> with_warning(
    Result<std::unique_ptr<PathLock>> lock,
    const std::string& path) {
  const Error* const missing =
      lock && *lock ? (*lock)->missing_lock() : nullptr;
  if (missing != nullptr) {
    print_warning(format(
        "{} cannot be locked, so that others may change it meanwhile: {}",
        escape(path, 200),
        missing->message));
  }
  return lock;
}

} // namespace

void add_target_flags(CLI::App& app, Target& target) {
  app.add_flag(
      "--dry-run",
      target.dry_run,
      "say what would be written, but write nothing");
  app.add_flag("--force", target.force, "replace an output that exists");
}

Result<std::unique_ptr<PathLock>> lock_own_input(
    const Target& target,
    const std::string& input) {
  if (target.dry_run || !is_input(target.path, input)) {
    return std::unique_ptr<PathLock>();
  }
  return with_warning(ckpt::lock_for_edit(target.path), target.path);
}

std::vector<std::string> records_without_place(
    const std::vector<ckpt::ExtraRecord>& records,
    const ckpt::FormatWriter& writer) {
  std::vector<std::string> names;
  for (const ckpt::ExtraRecord& record : records) {
    if (!writer.keeps_records) {
      names.push_back(record.name);
    }
  }
  return names;
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> escaped;
  escaped.reserve(names.size());
  for (const std::string& name : names) {
    escaped.push_back(escape(name));
  }
  return join(escaped, ", ");
}

std::string left_out_text(
    const std::vector<std::string>& records,
    std::string_view format_name) {
  return records.empty() ? ""
                         : format(
                               "left out: {} {}; {} has no place for {}\n",
                               records.size() == 1 ? "record" : "records",
                               names_text(records),
                               format_name,
                               records.size() == 1 ? "it" : "them");
}

std::string wrote_text(const Written& written) {
  const std::string what = format(
      "{}: {}",
      escape(written.path, 200),
      counted(written.tensors, "tensor"));
  if (written.is_dry_run) {
    return format(
        "would write {} ({}); nothing was written\n",
        what,
        written.format);
  }
  return format(
      "wrote {}, {} ({})\n",
      what,
      human_bytes(written.bytes),
      written.format);
}

void set_written(Json& result, const Written& written) {
  result.set("output", written.path)
      .set("format", written.format)
      .set("written", !written.is_dry_run)
      .set("tensors", written.tensors)
      .set("bytes", written.bytes);
}

CheckedTarget::CheckedTarget(Target target, TargetRule rule, bool is_own_input)
    : target_(std::move(target)),
      rule_(std::move(rule)),
      is_own_input_(is_own_input),
      nowhere_(target_.dry_run ? std::make_shared<DryRunFs>() : nullptr) {}

FileSystem& CheckedTarget::fs() const {
  return nowhere_ == nullptr ? real_fs() : *nowhere_;
}

Result<CheckedTarget> CheckedTarget::check(Target target, TargetRule rule) {
  std::string& path = target.path;
  if (path.empty()) {
    return refused(
        "the output has no name",
        "is the variable that should hold it empty?",
        path,
        "E_ENDING");
  }
  if (path == "-" || is_same_file(path, "/dev/stdout")) {
    return refused(
        "a checkpoint is written to a file, not to standard output",
        "name a file; './-' is one called '-'",
        path,
        "E_NOT_REGULAR");
  }
  if (ckpt::format_to_write(rule.format)->is_folder) { // "new/"
    path.resize(std::max<std::size_t>(path.find_last_not_of('/') + 1, 1));
  }
  if (!rule.is_format_asked) {
    LOCKSTEP_TRY(check_ending(path, rule.format));
  }
  const bool is_own = std::ranges::any_of(
      rule.inputs,
      [&path](const std::string& input) { return is_input(path, input); });
  if (is_own) {
    LOCKSTEP_TRY(check_own_input(target, rule));
  } else if (is_part_of(rule.inputs, path)) {
    return refused(
        lockstep::format(
            "{} would replace a file of the folder or index that is read",
            rule.result),
        "name another file to write",
        path,
        "E_SAME_FILE");
  } else {
    const bool is_folder = ckpt::format_to_write(rule.format)->is_folder;
    LOCKSTEP_TRY(check_path(target, path, is_folder));
  }
  if (const std::string index = index_path(target, rule); !index.empty()) {
    LOCKSTEP_TRY(check_path(target, index, false));
  }
  return CheckedTarget(std::move(target), std::move(rule), is_own);
}

Result<Written> CheckedTarget::save(
    const ckpt::Checkpoint& file,
    const ckpt::Value& root,
    ckpt::SaveOptions options) const {
  options.format = rule_.format;
  options.replace = save_options().replace;
  options.shard_bytes = rule_.shard_bytes;
  options.max_expanded_bytes = rule_.limits.max_expanded_bytes;
  ckpt::WriteOptions all{std::move(options)};
  all.byteorder_record = !file.byteorder.empty();
  all.lock = rule_.lock;
  LOCKSTEP_TRY(
      explained(ckpt::write_checkpoint(target_.path, root, all, fs())));
  warn_of_new_format(file, rule_.format);
  LOCKSTEP_ASSIGN(
      const std::uint64_t tensors,
      tensor_count(root, rule_.format));
  return written(tensors);
}

Result<Written> CheckedTarget::rewrite(
    const ckpt::Checkpoint& file,
    const ckpt::Value& root) const {
  const ckpt::RewriteOptions options{
      .archive_name = is_own_input_ ? file.archive_name : "", // by any path
      .replace = save_options().replace,
      .max_expanded_bytes = rule_.limits.max_expanded_bytes,
      .lock = rule_.lock};
  LOCKSTEP_TRY(
      explained(ckpt::rewrite(file, root, target_.path, options, fs())));
  warn_of_new_format(file, rule_.format);
  LOCKSTEP_ASSIGN(
      const std::uint64_t tensors,
      tensor_count(root, rule_.format));
  return written(tensors);
}

ckpt::SaveOptions CheckedTarget::save_options() const {
  return {
      .format = rule_.format,
      .replace = target_.force || is_own_input_,
      .max_expanded_bytes = rule_.limits.max_expanded_bytes};
}

Result<Written> CheckedTarget::written(std::uint64_t tensors) const {
  Written written{
      .path = written_path(target_, rule_, fs()),
      .format = rule_.format,
      .tensors = tensors,
      .is_dry_run = target_.dry_run};
  if (target_.dry_run) {
    return written;
  }
  if (rule_.lock == nullptr && ckpt::format_to_write(rule_.format)->is_folder) {
    auto lock = real_fs().lock_directory(target_.path); // the save's
    LOCKSTEP_TRY(with_warning(std::move(lock), target_.path));
  }
  LOCKSTEP_ASSIGN(const FileInfo info, real_fs().stat(written.path));
  written.bytes = info.size;
  if (written.path != target_.path || info.kind == FileInfo::Kind::kDirectory) {
    const ckpt::LoadOptions options{.limits = rule_.limits};
    LOCKSTEP_ASSIGN(const auto all, ckpt::load(written.path, options));
    written.bytes = all.file_bytes;
  }
  return written;
}

} // namespace lockstep::cli
