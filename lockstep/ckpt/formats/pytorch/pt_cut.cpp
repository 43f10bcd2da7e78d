// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/pytorch/pt_cut.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/pytorch/pt_storage.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/zip/serialization_id.h"
#include "lockstep/ckpt/zip/zip_recover.h"
#include "lockstep/ckpt/zip/zip_structs.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt::internal {
namespace {

// Pickles are read in windows of this size and then of 16 times as much.
constexpr std::uint64_t kFirstPickleWindow = 64 << 10;
constexpr std::uint64_t kLastWindow = 16 << 20;

class Walker {
 public:
  Walker(const std::shared_ptr<ByteSource>& source, const Limits& limits)
      : source_(source), limits_(limits) {}

  Result<CutArchive> run() {
    std::uint64_t at = 0;
    while (found_.whole.size() < limits_.max_records) {
      LOCKSTEP_ASSIGN(const auto header, read_local_record(*source_, at));
      if (!header || !has_root(header->name)) {
        break;
      }
      const std::string name = header->name.substr(root_.size() + 1);
      LOCKSTEP_ASSIGN(const auto size, size_of(*header, name));
      const std::uint64_t left = source_->size() - header->data_offset;
      if (!size) {
        LOCKSTEP_TRY(search_from(at));
        break;
      }
      if (*size > left) {
        found_.cut = name;
        break;
      }
      found_.whole.push_back(name);
      const std::uint64_t end = header->data_offset + *size;
      const bool has_descriptor = header->has_descriptor() && *size != 0;
      LOCKSTEP_ASSIGN(
          const std::uint64_t descriptor,
          has_descriptor ? descriptor_bytes(end) : Result<std::uint64_t>(0));
      at = end + descriptor;
    }
    predict();
    return std::move(found_);
  }

 private:
  bool has_root(const std::string& name) {
    if (root_.empty()) {
      root_ = name.substr(0, name.find('/'));
    }
    return name.size() > root_.size() + 1 && name.starts_with(root_) &&
           name[root_.size()] == '/';
  }

  // In the file. A streamed record does not say it before its end: the pickle
  // knows its own and those of the storages, if they are stored.
  Result<std::optional<std::uint64_t>> size_of(
      const LocalRecord& header,
      const std::string& name) {
    // The first one: a hostile file has thousands, each before all the others.
    if (name == "data.pkl" && !std::exchange(has_looked_, true)) {
      LOCKSTEP_TRY(read_plan(header));
    }
    if (!header.has_descriptor() || header.size != 0) {
      return std::optional(header.compressed_size);
    }
    if (header.header.method != kStored) {
      return std::optional<std::uint64_t>();
    }
    const auto known = sizes_.find(name);
    return known == sizes_.end() ? std::optional<std::uint64_t>()
                                 : std::optional(known->second);
  }

  Status read_plan(const LocalRecord& header) {
    const std::uint64_t left = source_->size() - header.data_offset;
    for (std::uint64_t window = kFirstPickleWindow;; window *= 16) {
      std::vector<std::byte> scratch;
      LOCKSTEP_ASSIGN(
          const ByteSpan bytes,
          source_->view(header.data_offset, std::min(window, left), scratch));
      StorageTable storages(nullptr, /*check_crc=*/false);
      const auto pickle = read_pickle(bytes, &storages, limits_);
      if (pickle) {
        plan("data.pkl", pickle->consumed);
        plan(".format_version", 1);
        plan(".storage_alignment", 2);
        plan("byteorder", 6);
        for (const StorageEntry& entry : storages.entries()) {
          plan("data/" + entry.storage->key, entry.storage->nbytes);
        }
        plan("version", 2);
        sizes_.emplace(kIdRecord, kIdBytes);
        return {};
      }
      if (window >= left || window >= kLastWindow) {
        return {};
      }
    }
  }

  void plan(std::string name, std::uint64_t size) {
    sizes_.emplace(name, size);
    planned_.push_back({.name = std::move(name), .size = size});
  }

  Result<std::uint64_t> descriptor_bytes(std::uint64_t at) {
    const std::uint64_t left = source_->size() - at;
    const std::uint64_t most =
        kStructBytes<DataDescriptor64> + sizeof(LocalHeader::kMagic);
    if (left < most) {
      return left;
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const ByteSpan bytes, source_->view(at, most, scratch));
    return starts_like_zip(bytes.subspan(kStructBytes<DataDescriptor64>))
               ? kStructBytes<DataDescriptor64>
               : kStructBytes<DataDescriptor>;
  }

  // Records of unknown size, as in a TorchScript program, whose pickle follows
  // the storages: each ends where a descriptor says so.
  Status search_from(std::uint64_t at) {
    const auto rest = slice_source(source_, at, source_->size() - at);
    LOCKSTEP_ASSIGN(const auto found, recover_zip_records(*rest, limits_));
    for (const ZipRecord& record : found.records) {
      if (has_root(record.name)) {
        found_.whole.push_back(record.name.substr(root_.size() + 1));
      }
    }
    const bool is_cut = !found.lost.empty() && has_root(found.lost.back().name);
    found_.cut = is_cut ? found.lost.back().name.substr(root_.size() + 1) : "";
    return {};
  }

  // Only writers of torch 2.6 and newer are known to the byte, and only if
  // what is there follows the plan.
  void predict() {
    std::vector<std::string> seen = found_.whole;
    if (!found_.cut.empty()) {
      seen.push_back(found_.cut);
    }
    // The last record; `zip_file_bytes` counts it by itself.
    const bool is_last = seen.size() == planned_.size() + 1;
    if (is_last && seen.back() == kIdRecord) {
      seen.pop_back();
    }
    const bool follows = seen.size() > 1 && seen.size() <= planned_.size() &&
                         std::ranges::equal(
                             seen,
                             std::span(planned_).first(seen.size()),
                             {},
                             {},
                             &PlannedRecord::name);
    if (!follows) {
      return;
    }
    const std::uint64_t expected = zip_file_bytes(root_, planned_);
    if (expected > source_->size()) {
      found_.expected_bytes = expected;
    }
  }

  std::shared_ptr<ByteSource> source_;
  Limits limits_;
  std::string root_;
  bool has_looked_ = false;
  std::map<std::string, std::uint64_t> sizes_;
  std::vector<PlannedRecord> planned_;
  CutArchive found_;
};

std::string records_text(const CutArchive& found) {
  std::string text = format(
      "{} whole{}{}",
      counted(found.whole.size(), "record is", "records are"),
      found.whole.empty() ? "" : ": ",
      some_names(found.whole));
  if (!found.cut.empty()) {
    text += format("; '{}' is cut", escape(found.cut));
  }
  return text;
}

} // namespace

Result<CutArchive> examine_cut(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  return Walker(source, limits).run();
}

bool can_rescue(const CutArchive& found) {
  const auto& whole = found.whole;
  return std::ranges::find(whole, "data.pkl") != whole.end() &&
         std::ranges::any_of(whole, [](const std::string& name) {
           return name.starts_with("data/");
         });
}

Error explain_cut(
    Error error,
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  const auto found = examine_cut(source, limits);
  if (!found) {
    return error;
  }
  const std::optional<std::uint64_t>& expected = found->expected_bytes;
  const std::string of = expected ? format(" of {}", *expected) : "";
  error.message = format(
      "the file ends at byte {}{}, before the directory of the zip archive: an "
      "interrupted download or copy, a full disk, or a save that was killed; "
      "{}",
      source->size(),
      of,
      records_text(*found));
  error.hint = can_rescue(*found)
                   ? "fetch the file again, or rescue the tensors that are "
                     "whole: 'lockstep ckpt repair FILE OUT'"
                   : "fetch the file again, or take an older checkpoint";
  return error;
}

} // namespace lockstep::ckpt::internal
