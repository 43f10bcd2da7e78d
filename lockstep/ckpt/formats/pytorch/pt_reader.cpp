// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/archive/byteorder.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"
#include "lockstep/ckpt/formats/pytorch/pt_cut.h"
#include "lockstep/ckpt/formats/pytorch/pt_storage.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/formats/torchscript/model_json.h"
#include "lockstep/ckpt/formats/torchscript/script_era.h"
#include "lockstep/ckpt/formats/torchscript/script_tree.h"
#include "lockstep/ckpt/pickle/allow_list.h"
#include "lockstep/ckpt/pickle/old_variables.h"
#include "lockstep/ckpt/zip/record_source.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

struct ForeignArchive {
  // A record that no other archive has.
  std::string_view record = {};
  std::string_view what = {};
  std::string_view hint = {};
};

constexpr std::string_view kProgramHint =
    "'lockstep ckpt convert IN.pt2 OUT.pt' takes the weights out of one that "
    "is "
    "sound";

constexpr std::array kForeignArchives{
    ForeignArchive{
        "models/model.json",
        "a program of torch.export",
        kProgramHint},
    ForeignArchive{
        kOldGraphRecord,
        "a program that torch 2.6 or 2.7 exported",
        kProgramHint},
    ForeignArchive{
        ".data/extern_modules",
        "a package of torch.package",
        "load the weights in Python with torch.package.PackageImporter, then "
        "torch.save them"}};

// E_WRONG_FORMAT for an archive that PyTorch writes for something else (a
// program of torch.export, a torch.package), else E_NO_PICKLE.
Error no_pickle_error(const ZipReader& zip) {
  for (const ForeignArchive& row : kForeignArchives) {
    if (zip.find(row.record) != nullptr) {
      return read_error(
          ErrorCode::kUnsupported,
          "E_WRONG_FORMAT",
          format("this is {}, not a checkpoint", row.what),
          std::string(row.hint));
    }
  }
  const std::span<const ZipRecord> records = zip.records();
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const ZipRecord& record : records) {
    names.push_back(record.name);
  }
  return read_error(
      ErrorCode::kCorrupt,
      "E_NO_PICKLE",
      format(
          "the archive has no record 'data.pkl', but {}{}{}",
          counted(names.size(), "other record", "other records"),
          names.empty() ? "" : ": ",
          some_names(names)),
      std::ranges::all_of(records, internal::is_frame_record, &ZipRecord::name)
          ? "torch.save failed while pickling: save again and read its error"
          : "");
}

using internal::StorageTable;

constexpr std::int64_t kOldestVersion = 1;
constexpr std::int64_t kNewestVersion = 10;

// Ids of a second pickle after the first: only its names matter.
class IgnoreIds final : public PersistentIdHandler {
 public:
  Result<Value> resolve(const Value& /*id*/) override {
    return Value();
  }
};

class PtReader {
 public:
  // Of a damaged archive only the pickle must be sound.
  enum class Demand : std::uint8_t { kAll, kPickle };

  PtReader(
      std::shared_ptr<const ZipReader> zip,
      const LoadOptions& options,
      Demand demand)
      : zip_(std::move(zip)), options_(options), demand_(demand) {}

  Result<Checkpoint> run() {
    file_.archive_name = zip_->root();
    file_.file_bytes = zip_->source()->size();
    file_.crc = zip_->crc_state();
    file_.format = script_era(*zip_).empty() ? "zip" : "torchscript";
    file_.era = era();
    file_.warnings = zip_->warnings();
    for (const Status& status : {read_version(), read_byteorder()}) {
      if (!status && demand_ == Demand::kAll) {
        return status.error();
      }
    }
    LOCKSTEP_TRY(read_tree());
    LOCKSTEP_TRY(check_allow_list(file_, options_, full_name("data.pkl")));
    return std::move(file_);
  }

 private:
  [[nodiscard]] std::string era() const {
    if (const auto script = script_era(*zip_); !script.empty()) {
      return std::string(script);
    }
    if (zip_->find(".format_version") != nullptr) {
      return "torch 2.6 or newer";
    }
    return zip_->find("byteorder") != nullptr ? "torch 2.1 to 2.5"
                                              : "torch 1.6 to 2.0";
  }

  // Small records are checked when read, whoever asks.
  Result<ByteSpan> read_record(
      const ZipRecord& record,
      std::vector<std::byte>& scratch) const {
    return options_.check_crc ? zip_->read_checked(record, scratch)
                              : zip_->read(record, scratch);
  }

  Status read_version() {
    const ZipRecord* record = zip_->find(".data/version");
    if (record == nullptr) {
      record = zip_->find("version");
    }
    if (record == nullptr) {
      return corrupt_file(
          "E_VERSION",
          "the archive has no record 'version'; expected one with 1 to 10",
          "");
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const ByteSpan bytes, read_record(*record, scratch));
    std::string_view text = as_text(bytes);
    while (text.starts_with(' ')) {
      text.remove_prefix(1);
    }
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), file_.version);
    if (error != std::errc{} || file_.version < kOldestVersion ||
        file_.version > kNewestVersion) {
      return corrupt_file(
          "E_VERSION",
          format(
              "file format version '{}'; expected {} to {}",
              escape(text),
              kOldestVersion,
              kNewestVersion),
          full_name(record->name));
    }
    return {};
  }

  Status read_byteorder() {
    const ZipRecord* record = zip_->find("byteorder");
    if (record == nullptr) {
      return note_byteorder(file_, {}, options_);
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const ByteSpan bytes, read_record(*record, scratch));
    return in_record(
        note_byteorder(file_, std::string(as_text(bytes)), options_),
        full_name(record->name));
  }

  Status read_tree() {
    const ZipRecord* record = zip_->find("data.pkl");
    if (record == nullptr) {
      return zip_->find(kModelJson) != nullptr ? read_old_script()
                                               : Status(no_pickle_error(*zip_));
    }
    if (record->size > options_.limits.max_pickle_bytes) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format(
              "data.pkl is too large; expected at most {} bytes, got {}",
              options_.limits.max_pickle_bytes,
              record->size),
          "Limits::max_pickle_bytes allows more");
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const ByteSpan bytes, read_record(*record, scratch));
    StorageTable storages(zip_, options_.checks_tensors());
    LOCKSTEP_ASSIGN(
        PickleResult pickle,
        in_record(
            read_pickle(bytes, &storages, options_.limits),
            full_name("data.pkl")));
    file_.root = std::move(pickle.root);
    file_.globals = std::move(pickle.globals);
    modernize_variables(file_.root, file_.globals);
    if (demand_ == Demand::kPickle && is_rest_of_script()) {
      file_.format = "torchscript";
    }
    std::ranges::move(pickle.warnings, std::back_inserter(file_.warnings));
    LOCKSTEP_TRY(scan_rest(bytes.subspan(pickle.consumed), pickle.consumed));
    if (demand_ == Demand::kAll) {
      LOCKSTEP_TRY(storages.check(file_.root));
    }
    std::ranges::move(storages.warnings(), std::back_inserter(file_.warnings));
    for (const auto& entry : storages.entries()) {
      file_.storages.push_back(entry.storage);
    }
    LOCKSTEP_TRY(turn_storages(file_));
    if (file_.format == "torchscript") {
      count_constants();
      LOCKSTEP_ASSIGN(file_.root, plain_tree(file_.root, options_.limits));
    }
    note_extra_records(storages);
    return {};
  }

  // Of a program that was cut, what says so may be lost.
  [[nodiscard]] bool is_rest_of_script() const {
    return has_script_code(*zip_) ||
           std::ranges::any_of(file_.globals, [](const GlobalUse& use) {
             return is_script_class(use.name);
           });
  }

  void note_extra_records(const StorageTable& storages) {
    // In the remains of an archive a record may have two names.
    std::set<std::uint64_t> used;
    const auto note = [&used](const ZipRecord* record) {
      if (record != nullptr) {
        used.insert(record->header_offset);
      }
    };
    note(zip_->find("data.pkl"));
    for (const auto& entry : storages.entries()) {
      note(entry.record);
    }
    for (const ZipRecord& record : zip_->records()) {
      const bool is_code =
          file_.format == "torchscript" && is_script_record(record.name);
      if (used.contains(record.header_offset) || is_code ||
          internal::is_frame_record(record.name)) {
        continue;
      }
      auto content = std::make_shared<Storage>(Storage{.nbytes = record.size});
      content->source =
          record_source(zip_, record, record.size, options_.checks_tensors());
      file_.extra_records.push_back(
          {.name = record.name, .content = std::move(content)});
    }
  }

  void count_constants() {
    for (const ZipRecord& record : zip_->records()) {
      if (record.name.starts_with("constants/")) {
        ++file_.constants;
        file_.constant_bytes += record.size;
      }
    }
  }

  Status read_old_script() {
    LOCKSTEP_ASSIGN(ModelJson model, read_model_json(zip_, options_));
    file_.globals = std::move(model.globals);
    file_.storages = std::move(model.storages);
    LOCKSTEP_ASSIGN(file_.root, plain_tree(model.root, options_.limits));
    return turn_storages(file_);
  }

  // A second pickle is never read by PyTorch; its names still count.
  Status scan_rest(ByteSpan rest, std::uint64_t offset) {
    if (rest.empty()) {
      return {};
    }
    file_.warnings.push_back(
        {.name = "W_TRAILING_PICKLE",
         .text = format(
             "{} the pickle at {:#x}",
             counted(rest.size(), "byte follows", "bytes follow"),
             offset)});
    IgnoreIds ids;
    auto second = read_pickle(rest, &ids, options_.limits);
    if (!second && is_spent(options_.limits)) {
      Error error = std::move(second).error();
      error.record = full_name("data.pkl");
      error.offset = offset + error.offset.value_or(0);
      return error;
    }
    if (!second) {
      return {}; // foreign bytes
    }
    for (GlobalUse& use : second->globals) {
      use.offset += offset;
      file_.globals.push_back(std::move(use));
    }
    return {};
  }

  [[nodiscard]] std::string full_name(std::string_view record) const {
    return format("{}/{}", zip_->root(), record);
  }

  std::shared_ptr<const ZipReader> zip_;
  LoadOptions options_;
  Demand demand_;
  Checkpoint file_;
};

} // namespace

Result<bool> claims_zip(const ReadInput& input) {
  if (input.source == nullptr) {
    return false;
  }
  // What was cut or damaged behind "PK" is still explained best as a zip file.
  const std::size_t equal = zip_magic_prefix(input.head);
  return equal >= 2 || equal == input.head.size()
             ? Result(true)
             : ends_like_zip(*input.source);
}

Result<Checkpoint> read_zip(const ReadInput& input) {
  auto zip = open_program_archive(input.source, input.options.limits);
  if (!zip) {
    Error error = std::move(zip).error();
    if (error.detail == "E_PREFIX") {
      error.hint = foreign_bytes_hint(input.source, input.options.limits);
    }
    return error.detail == "E_ZIP_NO_EOCD" ? internal::explain_cut(
                                                 std::move(error),
                                                 input.source,
                                                 input.options.limits)
                                           : error;
  }
  auto archive = std::make_shared<const ZipReader>(*std::move(zip));
  if (is_exported(*archive) && archive->find("data.pkl") == nullptr) {
    return read_exported_checkpoint(archive, input);
  }
  return PtReader(std::move(archive), input.options, PtReader::Demand::kAll)
      .run();
}

Result<Checkpoint> read_zip_remains(
    std::shared_ptr<const ZipReader> zip,
    const LoadOptions& options) {
  return PtReader(std::move(zip), options, PtReader::Demand::kPickle).run();
}

} // namespace lockstep::ckpt
