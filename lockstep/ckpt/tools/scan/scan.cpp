// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/scan.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/tar/tar_members.h"
#include "lockstep/ckpt/load/diagnose.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using internal::read_le;
using internal::ScanCollector;

Status scan_all(const std::shared_ptr<ByteSource>& source, ScanCollector& out) {
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan head,
      source->view(0, std::min(source->size(), kDiagnoseBytes), scratch));
  if (starts_like_zip(head)) {
    out.set_format("zip");
    internal::scan_zip(source, "", 0, out);
    return {};
  }
  if (is_tar(head)) {
    out.set_format("tar");
    internal::scan_tar(*source, out);
  } else if (is_npy(head)) {
    internal::scan_npy(*source, {}, out);
  } else if (internal::is_safetensors(*source)) {
    out.set_format("safetensors");
  }
  // Whatever else the bytes are: if they are also a pickle, it counts.
  const bool is_stream = internal::scan_stream(*source, {}, out);
  // Some readers find an archive after foreign bytes.
  LOCKSTEP_ASSIGN(const bool is_zip, ends_like_zip(*source));
  if (is_zip) {
    out.set_format("zip");
    internal::scan_zip(source, "", 0, out);
  } else if (!is_stream && !out.has_format()) {
    return diagnose(head, source->size());
  }
  return {};
}

// Endings that promise a checkpoint.
constexpr std::array<std::string_view, 15> kEndings{
    ".pt",
    ".pth",
    ".th",
    ".pkl",
    ".pickle",
    ".p",
    ".bin",
    ".ckpt",
    ".tar",
    ".npy",
    ".npz",
    ".distcp",
    ".metadata",
    ".model",
    ".safetensors"};

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
    LOCKSTEP_ASSIGN(const std::string real, fs_.resolve(folder.path));
    if (!visited_.insert(real).second || folder.depth > options_.max_depth) {
      return {};
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
      }
    }
    pending_.insert(
        pending_.end(),
        std::make_move_iterator(below.rbegin()),
        std::make_move_iterator(below.rend()));
    return {};
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

namespace internal {

bool is_safetensors(ByteSource& source) {
  constexpr std::uint64_t kMaxHeader = 100'000'000;
  std::vector<std::byte> scratch;
  const auto head =
      source.view(0, std::min<std::uint64_t>(source.size(), 9), scratch);
  if (!head || head->size() < 9) {
    return false;
  }
  const auto length = read_le<std::uint64_t>(*head, 0);
  return length >= 2 && length <= kMaxHeader && length <= source.size() - 8 &&
         ((*head)[8] == std::byte{'{'} || (*head)[8] == std::byte{' '});
}

} // namespace internal

bool promises_checkpoint(std::string_view path) {
  return std::ranges::any_of(kEndings, [path](std::string_view ending) {
    return path.ends_with(ending);
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
  ScanCollector out(name, limits);
  Status status = scan_all(source, out);
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
  return any(Verdict::kUnreadable) ? Verdict::kUnreadable : Verdict::kClean;
}

} // namespace lockstep::ckpt
