// SPDX-License-Identifier: BSD-3-Clause
//
// Records of zip files that hold pickles, whatever they are called, and
// archives inside archives. The bytes of tensors are left out unless they start
// as an array, an archive or a pickle that names something. A broken
// archive is scanned by its local headers: names are worth more than order.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/torchscript/script_era.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/tools/scan/scan_program.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_recover.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

using Place = ScanCollector::Place;

// Units: bytes.
constexpr std::uint64_t kMaxJsonBytes = 1 << 26;
constexpr std::uint64_t kTensorHeadBytes = 16;
constexpr std::uint64_t kJsonHeadBytes = 4096;
constexpr std::string_view kData = "data/";
constexpr std::string_view kTensorFolder = "tensors/";

Error refusal(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string_view record,
    std::string hint = {}) {
  return {
      .code = code,
      .op = "ckpt.scan",
      .message = std::move(message),
      .hint = std::move(hint),
      .record = std::string(record),
      .detail = std::string(detail)};
}

bool is_named_pickle(std::string_view name) {
  const std::string lower = lower_case(name);
  return std::ranges::any_of(kPickleEndings, [&](std::string_view ending) {
    return lower.ends_with(ending);
  });
}

// A program of LibTorch, or of its mobile interpreter.
bool is_script(const ZipReader& zip) {
  return !script_era(zip).empty() ||
         zip.find_in_any_case("bytecode.pkl") != nullptr;
}

class ZipScan {
 public:
  ZipScan(
      const ZipReader& zip,
      std::string outer,
      int depth,
      ScanCollector& out)
      : zip_(zip),
        outer_(std::move(outer)),
        depth_(depth),
        is_script_(is_script(zip)),
        payloads_(payload_records(zip, out.limits())),
        out_(out) {}

  void run() {
    if (is_script_) {
      out_.set_script();
    }
    for (Error& error : payloads_.unreadable) {
      error.record = full_name(error.record);
      out_.add_unreadable(std::move(error));
    }
    std::set<std::string> outer_keys = out_.swap_storage_keys({});
    // The pickles tell which of the others are tensors.
    for (const bool is_data : {false, true}) {
      for (const ZipRecord& record : zip_.records()) {
        if (may_be_tensor(record.name) == is_data) {
          scan(record);
        }
      }
    }
    out_.swap_storage_keys(std::move(outer_keys));
  }

 private:
  void scan(const ZipRecord& record) {
    auto status = scan_record(record);
    if (!status) {
      Error error = std::move(status).error();
      error.record = full_name(record.name);
      out_.add_unreadable(std::move(error));
    }
  }

  static bool may_be_tensor(std::string_view name) {
    return name.starts_with(kData) || name.starts_with(kTensorFolder);
  }

  // The bytes of a tensor: PyTorch never unpickles them. NumPy and others read
  // them all the same if they say what they are; numbers seldom name anything.
  Status scan_tensor(
      const std::shared_ptr<ByteSource>& content,
      const Place& place) {
    std::vector<std::byte> scratch;
    for (std::uint64_t at = 0; at < content->size();) {
      LOCKSTEP_ASSIGN(
          const ByteSpan head,
          content->view(
              at,
              std::min<std::uint64_t>(content->size() - at, kTensorHeadBytes),
              scratch));
      if (at == 0 && (starts_like_zip(head) || is_npy(head))) {
        scan_member(content, place, depth_, out_);
        return {};
      }
      if (!starts_like_pickle(as_text(head))) {
        return {};
      }
      LOCKSTEP_ASSIGN(
          const PickleScan scan,
          scan_pickle_at(
              *content,
              at,
              {.limits = out_.limits(), .has_joblib_arrays = false}));
      if (std::ranges::any_of(scan.names, [&](const PickleName& name) {
            return may_be_asked_for(name, scan);
          })) {
        scan_stream(*content, place, out_);
        return {};
      }
      at = scan.broken ? content->size() : at + scan.consumed;
    }
    return {};
  }

  // True if a pickle has the record as a storage, or a table of weights.
  bool is_tensor(const std::string& name) {
    if (payloads_.tensors.contains(lower_case(name))) {
      return true;
    }
    if (name.starts_with(kData)) {
      return out_.storage_keys().contains(name.substr(kData.size()));
    }
    return name.starts_with(kTensorFolder) && quoted_names().contains(name);
  }

  // Programs of torch 1.0 and older name their tensors in a text: all that
  // stands between quotes there.
  const std::set<std::string>& quoted_names() {
    if (!quoted_names_) {
      const ZipRecord* const record = zip_.find("model.json");
      std::vector<std::byte> scratch;
      const auto bytes = record != nullptr && record->size <= kMaxJsonBytes
                             ? zip_.read(*record, scratch)
                             : Result<ByteSpan>(ByteSpan());
      quoted_names_.emplace();
      const std::string_view text = bytes ? as_text(*bytes) : "";
      for (std::size_t at = text.find('"'); at < text.size();) {
        const std::size_t end = text.find('"', at + 1);
        quoted_names_->emplace(text.substr(at + 1, end - at - 1));
        at = end;
      }
    }
    return *quoted_names_;
  }

  // Stored ones as they lie in the file.
  Result<std::shared_ptr<ByteSource>> content_of(
      const ZipRecord& record,
      std::vector<std::byte>& scratch) const {
    if (record.method == 0) {
      return slice_source(zip_.source(), record.data_offset, record.size);
    }
    if (record.size > out_.limits().max_pickle_bytes) {
      return refusal(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("the record has {} bytes, more than the limit", record.size),
          {},
          "Limits::max_pickle_bytes allows more");
    }
    LOCKSTEP_ASSIGN(const ByteSpan bytes, zip_.read(record, scratch));
    return make_source(bytes);
  }

  // The text of a graph is read as a whole, like a pickle. False if it has none
  // or cannot be read: it may be something else then.
  Result<bool>
  scan_graph(const ZipRecord& record, ByteSource& content, const Place& place) {
    const bool is_sure =
        is_exported(zip_) || is_old_program_record(record.name);
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(
        const ByteSpan head,
        content.view(
            0,
            std::min<std::uint64_t>(content.size(), kJsonHeadBytes),
            scratch));
    if (!is_sure && !starts_like_json(as_text(head))) {
      return false;
    }
    if (record.size > out_.limits().max_pickle_bytes) {
      out_.add_unreadable(refusal(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("the record has {} bytes, more than the limit", record.size),
          place.record,
          "Limits::max_pickle_bytes allows more"));
      return false;
    }
    LOCKSTEP_ASSIGN(
        const ByteSpan text,
        content.view(0, content.size(), scratch));
    if (!scan_program(as_text(text), place.record, is_sure, out_)) {
      return false;
    }
    LOCKSTEP_TRY(zip_.check_crc(record));
    return true;
  }

  Status scan_record(const ZipRecord& record) {
    const bool is_named = is_named_pickle(record.name) ||
                          is_object_record(record.name) ||
                          payloads_.pickles.contains(lower_case(record.name));
    if (is_compiled_record(record.name)) {
      out_.add_code("compiled code", {.record = full_name(record.name)});
    }
    if (record.size == 0) {
      return {};
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const auto content, content_of(record, scratch));
    const Place place{
        .record = full_name(record.name),
        .is_script = is_script_,
        .is_sure = is_named};
    if (is_program_record(record.name)) {
      LOCKSTEP_ASSIGN(
          const bool has_graph,
          scan_graph(record, *content, place));
      if (has_graph) {
        return {};
      }
    }
    if (!is_named && is_tensor(record.name)) {
      return scan_tensor(content, place);
    }
    if (!scan_member(content, place, depth_, out_)) {
      if (!may_be_tensor(record.name)) {
        note_packed(*content, place, out_);
      }
      return is_named
                 ? Status(refusal(
                       ErrorCode::kCorrupt,
                       "E_PICKLE",
                       "the record has the name of a pickle but is not one",
                       place.record))
                 : Status();
    }
    return zip_.check_crc(record);
  }

  [[nodiscard]] std::string full_name(const std::string& name) const {
    const std::string inner =
        zip_.root().empty() ? name : zip_.root() + "/" + name;
    return outer_.empty() ? inner : outer_ + "!" + inner;
  }

  const ZipReader& zip_;
  std::string outer_;
  int depth_;
  bool is_script_;
  PayloadRecords payloads_;
  ScanCollector& out_;
  std::optional<std::set<std::string>> quoted_names_;
};

// Names of arrays may differ in letter case alone: NumPy tells them apart, and
// PyTorch, which does not, reads no archive of arrays.
Result<ZipReader> open_archive(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  auto zip = ZipReader::open(source, limits);
  if (zip || zip.error().detail != "E_DUP_CASEFOLD") {
    return zip;
  }
  auto flat = ZipReader::open(source, limits, ZipForm::kFlat);
  const bool has_arrays_only =
      flat && std::ranges::all_of(flat->records(), [](const ZipRecord& record) {
        return record.name.ends_with(kNpySuffix);
      });
  return has_arrays_only ? std::move(flat) : std::move(zip);
}

// Archives one after another, as in the files of a sharded checkpoint; each
// alone must be sound. Empty if they do not cover the file.
Result<std::vector<ZipReader>> open_chain(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  LOCKSTEP_ASSIGN(const auto end_records, find_end_records(*source, limits));
  std::vector<ZipReader> chain;
  std::uint64_t begin = 0;
  for (const std::uint64_t end_record : end_records) {
    const std::uint64_t end = end_record + kStructBytes<EndRecord>;
    auto zip =
        ZipReader::open(slice_source(source, begin, end - begin), limits);
    if (zip) {
      chain.push_back(*std::move(zip));
      begin = end;
    }
  }
  if (begin != source->size()) {
    chain.clear();
  }
  return chain;
}

void scan_broken(
    const std::shared_ptr<ByteSource>& source,
    const std::string& outer,
    int depth,
    Error error,
    ScanCollector& out) {
  error.record = outer.empty() ? error.record : outer;
  out.add_unreadable(std::move(error));
  auto found = recover_zip_records(*source, out.limits());
  if (!found) {
    out.add_unreadable(std::move(found).error());
    return;
  }
  const ZipReader zip =
      ZipReader::recovered(source, std::move(found->records), out.limits());
  ZipScan(zip, outer, depth, out).run();
}

// Few files are chains; those of other kinds are not searched for ends.
bool may_be_chain(const Error& error) {
  return error.detail == "E_PREFIX" || error.detail == "E_ZIP_AMBIGUOUS" ||
         error.detail == "E_BOUNDS";
}

} // namespace

void scan_zip(
    const std::shared_ptr<ByteSource>& source,
    const std::string& outer,
    int depth,
    ScanCollector& out) {
  if (depth > kMaxArchiveLevels) {
    out.add_unreadable(refusal(
        ErrorCode::kUnsafe,
        "E_DEPTH",
        "archives are nested too deeply",
        outer));
    return;
  }
  Limits limits = out.limits();
  limits.allow_no_root = true; // other loaders take such archives
  const auto zip = open_archive(source, limits);
  if (zip) {
    ZipScan(*zip, outer, depth, out).run();
    return;
  }
  if (may_be_chain(zip.error())) {
    const auto chain = open_chain(source, out.limits());
    if (chain && !chain->empty()) {
      for (const ZipReader& part : *chain) {
        ZipScan(part, outer, depth, out).run();
      }
      return;
    }
  }
  scan_broken(source, outer, depth, zip.error(), out);
}

} // namespace lockstep::ckpt::internal
