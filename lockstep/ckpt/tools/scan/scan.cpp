// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/scan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/formats/tar/tar_header.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/diagnose.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using internal::ScanCollector;

// Why the file is not of the format after all.
std::optional<Error>
scan_as(const Format& format, const ReadInput& input, ScanCollector& out) {
  switch (format.pickles) {
    case PicklePlace::kMembers:
      out.set_format(format.name);
      internal::scan_tar(input.source, out);
      break;
    case PicklePlace::kArray:
      internal::scan_npy(input.source, {}, out);
      break;
    case PicklePlace::kNowhere: {
      const auto file = format.read(input);
      if (!file) {
        return file.error();
      }
      out.set_format(format.name);
      break;
    }
    case PicklePlace::kStream:
    case PicklePlace::kRecords:
    case PicklePlace::kElsewhere:
      break; // looked for in every file, or in others
  }
  return std::nullopt;
}

// A sound file may start with a length that looks like the start of a pickle.
Result<bool> names_nothing(ByteSource& source, const Limits& limits) {
  LOCKSTEP_ASSIGN(
      const PickleScan scan,
      scan_pickle_at(source, 0, {.limits = limits}));
  return scan.broken && scan.names.empty();
}

// Whatever else the file is: its first block may also be the header of a tar
// file, to Python.
void scan_as_tar(
    const std::shared_ptr<ByteSource>& source,
    ScanCollector& out) {
  out.set_format("tar");
  internal::scan_tar(source, out);
}

// joblib goes by the first bytes, which may be the length that a file of
// tensors begins with: of those gzip alone can go on from there.
bool may_be_packed(ByteSpan head, bool is_pickle_free) {
  return is_packed(head) &&
         (!is_pickle_free || as_text(head).starts_with("\x1f\x8b\x08"));
}

Status scan_all(const std::shared_ptr<ByteSource>& source, ScanCollector& out) {
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan head,
      source->view(0, std::min(source->size(), kDiagnoseBytes), scratch));
  const bool is_tar_file = starts_like_tar(head);
  if (starts_like_zip(head)) {
    out.set_format("zip");
    internal::scan_zip(source, "", 0, out);
    if (is_tar_file) {
      scan_as_tar(source, out);
    }
    return {};
  }
  const ReadInput input{
      .source = source,
      .head = head,
      .options = {.limits = out.limits()}};
  LOCKSTEP_ASSIGN(const Format* format, find_format(input));
  std::optional<Error> unread;
  bool is_pickle_free = false;
  if (format != nullptr) {
    unread = scan_as(*format, input, out);
    is_pickle_free = format->pickles == PicklePlace::kNowhere && !unread;
  }
  if (is_tar_file &&
      (format == nullptr || format->pickles != PicklePlace::kMembers)) {
    scan_as_tar(source, out);
  }
  if (may_be_packed(head, is_pickle_free)) {
    internal::note_packed(*source, {}, out);
  }
  if (is_pickle_free) {
    LOCKSTEP_ASSIGN(is_pickle_free, names_nothing(*source, out.limits()));
  }
  // Whatever else the bytes are: if they are also a pickle, it counts.
  const ScanCollector::Place place{
      .is_sure =
          format == nullptr && !is_tar_file && promises_checkpoint(out.path())};
  const bool is_stream =
      !is_pickle_free && internal::scan_stream(*source, place, out);
  // Some readers find an archive after foreign bytes.
  LOCKSTEP_ASSIGN(const bool is_zip, ends_like_zip(*source));
  if (is_zip) {
    out.set_format("zip");
    internal::scan_zip(source, "", 0, out);
  } else if (!is_stream && !out.has_format() && !is_packed(head)) {
    Error error = unread ? *unread : diagnose(head, source->size());
    if (out.path().ends_with(".index.json")) {
      error.message =
          "an index names the files with the weights: scan them, "
          "or the folder";
    }
    return error;
  }
  return {};
}

// Every file below a folder, in the order of names, without recursion.
class FolderWalk {
 public:
  FolderWalk(const ScanPathOptions& options, FileSystem& fs)
      : options_(options), fs_(fs) {}

  Result<std::vector<ScanReport>> run(const std::string& path) {
    pending_.push_back({.path = path});
    while (!pending_.empty()) {
      const Folder folder = std::move(pending_.back());
      pending_.pop_back();
      Status status = scan_folder(folder);
      if (!status && folder.depth == 0) {
        return status.error();
      }
      if (!status) {
        add_unreadable(folder.path, status.error());
      }
    }
    return std::move(reports_);
  }

 private:
  struct Folder {
    std::string path = {};
    int depth = 0;
  };

  Status scan_folder(const Folder& folder) {
    // A folder reached twice, by links, is scanned once.
    LOCKSTEP_ASSIGN(const std::string real, real_path(folder.path));
    if (!visited_.insert(real).second) {
      return {};
    }
    if (folder.depth > options_.max_depth) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("folders more than {} deep are not read", options_.max_depth),
          "scan this one by itself");
    }
    LOCKSTEP_ASSIGN(const auto names, fs_.list(folder.path));
    std::vector<Folder> below;
    for (const std::string& name : names) {
      std::string path = folder.path + "/" + name;
      const auto info = fs_.stat(path);
      const auto kind = info ? info->kind : FileInfo::Kind::kFile;
      if (kind == FileInfo::Kind::kDirectory) {
        below.push_back({.path = std::move(path), .depth = folder.depth + 1});
      } else if (kind == FileInfo::Kind::kFile) {
        scan_file(path);
        if (name == kDcpMetadataFile &&
            reports_.back().verdict == Verdict::kClean) {
          internal::scan_dcp_objects(
              folder.path,
              options_.limits,
              fs_,
              reports_);
        }
      } else {
        reports_.push_back({.path = path, .notes = {no_file()}});
      }
    }
    pending_.insert(
        pending_.end(),
        std::make_move_iterator(below.rbegin()),
        std::make_move_iterator(below.rend()));
    return {};
  }

  // The one path of a folder that has no links and dots in it.
  Result<std::string> real_path(std::filesystem::path path) {
    constexpr int kMaxLinks = 40;
    for (int links = 0; links <= kMaxLinks; ++links) {
      LOCKSTEP_ASSIGN(auto next, without_first_link(path));
      if (next == path) {
        return std::filesystem::absolute(next.empty() ? "." : next)
            .lexically_normal()
            .string();
      }
      path = std::move(next);
    }
    return read_error(
        ErrorCode::kUnsafe,
        "E_DEPTH",
        format("more than {} links lead to the folder", kMaxLinks));
  }

  Result<std::filesystem::path> without_first_link(
      const std::filesystem::path& path) {
    std::filesystem::path done;
    for (auto part = path.begin(); part != path.end(); ++part) {
      if (*part == ".." && !done.empty() && done.filename() != "..") {
        done = done.parent_path();
        continue;
      }
      const std::filesystem::path next = done / *part;
      LOCKSTEP_ASSIGN(std::filesystem::path real, fs_.resolve(next.string()));
      if (real != next) {
        while (++part != path.end()) {
          real /= *part;
        }
        return real;
      }
      done = *part == "." ? done : next;
    }
    return done;
  }

  static Error no_file() {
    return read_error(
        ErrorCode::kUnsupported,
        "E_NOT_REGULAR",
        "a device, pipe or socket, which is not opened");
  }

  void scan_file(const std::string& path) {
    const auto source = open_source(path, {false}, fs_);
    if (!source) {
      add_unreadable(path, source.error());
      return;
    }
    reports_.push_back(scan(*source, path, options_.limits));
    ScanReport& report = reports_.back();
    if (report.verdict == Verdict::kOther && promises_checkpoint(path)) {
      report.verdict = Verdict::kUnreadable;
    }
    // Half a file that a killed writer left; what it runs is a finding still.
    if (report.verdict == Verdict::kUnreadable &&
        is_temporary_name(base_name(path))) {
      report.verdict = Verdict::kOther;
    }
  }

  void add_unreadable(const std::string& path, const Error& error) {
    reports_.push_back(
        {.path = path, .verdict = Verdict::kUnreadable, .notes = {error}});
  }

  ScanPathOptions options_;
  FileSystem& fs_;
  std::vector<Folder> pending_;
  std::set<std::string> visited_;
  std::vector<ScanReport> reports_;
};

} // namespace

bool promises_checkpoint(std::string_view path) {
  const auto ends = [path](std::string_view ending) {
    return path.ends_with(ending);
  };
  return std::ranges::any_of(internal::kPickleEndings, ends) ||
         ends(".model") ||
         std::ranges::any_of(formats(), [path](const Format& format) {
           return !ending_of(format, path).empty();
         });
}

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{
      "clean",
      "found",
      "unreadable",
      "other"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

ScanReport scan(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const Limits& limits) {
  ScanCollector out(name, source->size(), limits);
  Status status;
  Status ended = caught("ckpt.scan", [&]() -> Status {
    status = scan_all(source, out);
    return {};
  });
  if (!ended) {
    out.add_unreadable(std::move(ended).error());
  }
  ScanReport report = out.finish();
  if (!status) {
    report.notes.push_back(status.error());
  }
  return report;
}

Result<std::vector<ScanReport>> scan_path(
    const std::string& path,
    const ScanPathOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(const FileInfo info, fs.stat(path));
  if (info.kind != FileInfo::Kind::kDirectory) {
    LOCKSTEP_ASSIGN(const auto source, open_source(path, {false}, fs));
    ScanReport report = scan(source, path, options.limits);
    if (report.verdict == Verdict::kOther) {
      report.verdict = Verdict::kUnreadable; // it was asked for by name
    }
    return std::vector{std::move(report)};
  }
  return FolderWalk(options, fs).run(path);
}

Verdict worst(const std::vector<ScanReport>& reports) {
  const auto any = [&reports](Verdict verdict) {
    return std::ranges::any_of(reports, [verdict](const ScanReport& report) {
      return report.verdict == verdict;
    });
  };
  if (any(Verdict::kFound)) {
    return Verdict::kFound;
  }
  for (const Verdict verdict : {Verdict::kUnreadable, Verdict::kClean}) {
    if (any(verdict)) {
      return verdict;
    }
  }
  return Verdict::kOther;
}

} // namespace lockstep::ckpt
