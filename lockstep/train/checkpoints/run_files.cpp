// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/run_files.h"

#include <algorithm>
#include <limits>
#include <span>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

/// Units: characters. Headers differ at their ends.
constexpr std::size_t kShownColumns = 200;

/// What of a file is kept.
struct Kept {
  /// Units: bytes.
  std::uint64_t bytes = 0;
  std::int64_t rows = 0;
};

/// Up to the row after the first `rows` ones, or to the end; a last line
/// without its line feed does not count.
Kept keep_rows(
    std::string_view text,
    std::string_view header,
    std::int64_t rows,
    const RunFile::IsRow& is_row) {
  Kept kept;
  bool is_header = !header.empty();
  for (auto end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', kept.bytes)) {
    const std::string_view line = text.substr(kept.bytes, end - kept.bytes);
    if (!is_header && is_row(line)) {
      if (kept.rows == rows) {
        break;
      }
      ++kept.rows;
    }
    is_header = false;
    kept.bytes = end + 1;
  }
  return kept;
}

/// The file's text, which begins with `first`; empty if there is no file.
std::string
text_of(FileSystem& fs, const std::string& path, const std::string& first) {
  auto text = read_text(fs, path);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return {};
  }
  // Half of a header is all that a killed run may have left.
  if (!text.value().starts_with(first) && !first.starts_with(*text)) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.rows",
         .message = format(
             "the file has other columns: expected '{}', got '{}'",
             escape(first.substr(0, first.find('\n')), kShownColumns),
             escape(text->substr(0, text->find('\n')), kShownColumns)),
         .hint = "rename it: a new one is begun beside it",
         .path = path,
         .detail = "E_OTHER_FILE"});
  }
  return text->size() < first.size() ? std::string() : *std::move(text);
}

Error short_file(
    const std::string& path,
    std::int64_t expected,
    std::int64_t got) {
  return {
      .code = ErrorCode::kMismatch,
      .op = "train.resume",
      .message = format(
          "rows are missing: the checkpoint counted {}, found {}",
          expected,
          got),
      .path = path};
}

} // namespace

RunFile::RunFile(RowFile file, std::int64_t rows, ErrorHandler on_error)
    : file_(std::move(file)), on_error_(std::move(on_error)), rows_(rows) {}

void RunFile::append(std::string_view row) {
  const std::uint64_t dropped = file_.dropped();
  const Status status = file_.append(row);
  if (file_.dropped() == dropped) {
    const std::lock_guard lock(mutex_);
    ++rows_;
  }
  report(status);
}

void RunFile::note(std::string_view line) {
  report(file_.append(line));
}

Status RunFile::sync() {
  return file_.sync();
}

std::int64_t RunFile::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

void RunFile::report(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_failing = std::exchange(is_failing_, !status);
    if (was_failing || status) {
      return;
    }
  }
  // The handler may write to this very file.
  on_error_(status.error());
}

RunFiles::RunFiles(FileSystem& fs, ErrorHandler on_error)
    : fs_(fs), on_error_(std::move(on_error)) {}

RunFile& RunFiles::open(
    const std::string& path,
    std::string_view header,
    const RunFile::IsRow& is_row) {
  const std::int64_t rows = counted(base_name(path));
  const std::string first = header.empty() ? "" : std::string(header) + "\n";
  const std::string text = text_of(fs_, path, first);
  const Kept kept = keep_rows(text, header, rows, is_row);
  if (kept.rows < rows && saved_) {
    on_error_(short_file(path, rows, kept.rows));
  }
  if (text.empty()) {
    write_file_atomically(fs_, path, first).value();
  }
  auto& [_, file] = files_.emplace_back(
      base_name(path),
      std::make_unique<RunFile>(
          RowFile::open(fs_, path, text.empty() ? first.size() : kept.bytes)
              .value(),
          kept.rows,
          on_error_));
  return *file;
}

std::string RunFiles::read(const std::string& path) const {
  auto text = read_text(fs_, path);
  return text ? *std::move(text) : std::string();
}

std::string RunFiles::read_end(
    const std::string& path,
    std::uint64_t most_bytes) const {
  const auto file = fs_.open_read(path);
  if (!file || (*file)->size() <= most_bytes) {
    return read(path);
  }
  std::string text(most_bytes, '\0');
  const auto bytes = std::as_writable_bytes(std::span(text));
  if (!(*file)->read_at((*file)->size() - most_bytes, bytes)) {
    return {};
  }
  return text.substr(text.find('\n') + 1);
}

void RunFiles::replace(const std::string& path, std::string_view text) {
  // Not durable: no step waits for the disk.
  report(write_file_atomically(fs_, path, text, {.durable = false}));
}

void RunFiles::report(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_failing = std::exchange(is_failing_, !status);
    if (was_failing || status) {
      return;
    }
  }
  on_error_(status.error());
}

void RunFiles::also_sync(std::function<Status()> sync) {
  const std::lock_guard lock(mutex_);
  also_synced_.push_back(std::move(sync));
}

Status RunFiles::sync() {
  for (const auto& [_, file] : files_) {
    LOCKSTEP_TRY(file->sync());
  }
  std::unique_lock lock(mutex_);
  const auto others = also_synced_;
  lock.unlock();
  for (const auto& sync : others) {
    report(sync());
  }
  return {};
}

StatePart RunFiles::part() {
  return {
      .key = "rows",
      .save =
          [this](ValueBuilder&) {
            ckpt::Dict rows;
            for (const auto& [name, file] : files_) {
              rows.items.emplace_back(name, file->rows());
            }
            return ckpt::Value(std::move(rows));
          },
      .load =
          [this](const ckpt::Value& saved) {
            saved_.emplace();
            const ckpt::Dict* rows = saved.as_dict();
            for (const auto& [name, count] :
                 rows != nullptr ? rows->items : std::vector<ckpt::Item>{}) {
              if (const std::int64_t* number = count.as_int()) {
                saved_->emplace_back(name.text(), *number);
              }
            }
          },
      .if_missing = IfMissing::kIgnore};
}

void RunFiles::start_anew() {
  saved_.emplace();
}

std::int64_t RunFiles::counted(const std::string& name) const {
  if (!saved_) {
    return std::numeric_limits<std::int64_t>::max();
  }
  const auto found = std::ranges::find(
      *saved_,
      name,
      &std::pair<std::string, std::int64_t>::first);
  return found == saved_->end() ? 0 : found->second;
}

} // namespace lockstep::train
