// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/verify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_layout.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kData = "data/";
constexpr std::array<std::string_view, 4> kPayloads{
    "data/weights/",
    "data/constants/",
    kOldWeightsRecord,
    kOldConstantsRecord};

constexpr std::uint64_t kVerifyBlockBytes = 1ULL << 18;

Status read_all(const Storage& storage) {
  std::vector<std::byte> scratch;
  for (std::uint64_t at = 0; at < storage.nbytes; at += kVerifyBlockBytes) {
    LOCKSTEP_TRY(storage.source->view(
        at,
        std::min(kVerifyBlockBytes, storage.nbytes - at),
        scratch));
  }
  return {};
}

Finding finding_of(const Error& error) {
  return {
      .detail = error.detail,
      .message = error.message,
      .record = error.record,
      .code = error.code,
      .hint = error.hint};
}

// Python has no such text in a file of its own: it was damaged, or decoded as
// something else.
void warn_of_names(
    const std::vector<std::string>& names,
    VerifyReport& report) {
  if (!names.empty()) {
    report.warnings.push_back(
        {.detail = "W_NAME",
         .message = format(
             "{} no UTF-8: {}; safetensors takes UTF-8 only",
             counted(names.size(), "name is", "names are"),
             some_names(names)),
         .tensors = names});
  }
}

// Of a container without checksums every storage is read to its end.
VerifyReport verify_storages(const Checkpoint& file) {
  VerifyReport report;
  std::map<const Storage*, std::vector<std::string>> names;
  std::vector<std::shared_ptr<Storage>> storages;
  std::vector<std::string> odd_names;
  const Status status = for_each_tensor(
      file.root,
      [&](const std::string& name, const Tensor& tensor) {
        ++report.tensors;
        if (!is_utf8(name)) {
          odd_names.push_back(name);
        }
        auto [row, is_new] = names.try_emplace(tensor.storage.get());
        row->second.push_back(name);
        if (is_new && tensor.storage != nullptr) {
          storages.push_back(tensor.storage);
        }
      },
      {.budget = file.budget.get()});
  for (const auto& storage : file.storages) { // also those of no tensor
    if (names.try_emplace(storage.get()).second) {
      storages.push_back(storage);
    }
  }
  if (!status) {
    report.errors.push_back(finding_of(status.error()));
  }
  for (const auto& storage : storages) {
    if (storage->source == nullptr) {
      continue;
    }
    ++report.records;
    const Status read = read_all(*storage);
    if (read) {
      report.checked_bytes += storage->nbytes;
      continue;
    }
    report.errors.push_back(finding_of(read.error()));
    report.errors.back().tensors = names[storage.get()];
  }
  for (const Warning& warning : file.warnings) {
    report.warnings.push_back(
        {.detail = warning.name, .message = warning.text});
  }
  warn_of_names(odd_names, report);
  return report;
}

class Verifier {
 public:
  Verifier(ZipReader zip, Result<Checkpoint> file)
      : zip_(std::move(zip)),
        file_(std::move(file)),
        is_program_(is_exported(zip_)) {}

  VerifyReport run() {
    report_.records = zip_.records().size();
    collect_names();
    check_records();
    check_tree();
    check_sparse();
    check_layout();
    check_unused();
    return std::move(report_);
  }

 private:
  // A program has its graph's tables and pickles beside the storages.
  [[nodiscard]] bool is_data(const ZipRecord& record) const {
    const std::string_view name = record.name;
    return is_program_ ? !name.ends_with(".json") &&
                             std::ranges::any_of(
                                 kPayloads,
                                 [name](std::string_view folder) {
                                   return name.starts_with(folder);
                                 })
                       : name.starts_with(kData);
  }

  // Which tensors live in which record.
  void collect_names() {
    if (!file_) {
      return;
    }
    std::vector<std::string> odd_names;
    const Status status = for_each_tensor(
        file_->root,
        [&](const std::string& name, const Tensor& tensor) {
          ++report_.tensors;
          if (!is_utf8(name)) {
            odd_names.push_back(name);
          }
          tensors_[tensor.storage->key].push_back(name);
        },
        {.budget = file_->budget.get()});
    if (!status) {
      add_error(status.error());
    }
    warn_of_names(odd_names, report_);
  }

  void check_records() {
    for (const ZipRecord& record : zip_.records()) {
      Status status = zip_.check_crc(record);
      if (status) {
        report_.checked_bytes += zip_.has_crc(record) ? record.size : 0;
        continue;
      }
      Error error = std::move(status).error();
      error.record = record.name;
      add_error(error);
      if (is_data(record)) {
        const auto found = tensors_.find(record.name.substr(kData.size()));
        if (found != tensors_.end()) {
          report_.errors.back().tensors = found->second;
        }
      }
    }
    for (const Warning& warning : file_ ? file_->warnings : zip_.warnings()) {
      add_warning(warning.name, warning.text, "");
    }
  }

  // A damaged pickle is reported once, by its CRC.
  void check_tree() {
    if (file_) {
      return;
    }
    const bool known =
        std::ranges::any_of(report_.errors, [](const Finding& finding) {
          return !finding.record.starts_with(kData) ||
                 finding.record.ends_with(".json");
        });
    if (!known) {
      add_error(file_.error());
    }
  }

  // Only where the bytes are sound: damage was named before.
  void check_sparse() {
    if (!file_ || !report_.is_sound()) {
      return;
    }
    for (const LayoutTensor& tensor : layout_tensors(file_->root)) {
      const Status status = check_indices(tensor);
      if (!status) {
        add_error(status.error());
      }
    }
  }

  // 0 if the record holds anything but a power of two.
  [[nodiscard]] std::uint64_t alignment(std::string& text) const {
    const ZipRecord* record = zip_.find(".storage_alignment");
    if (record == nullptr) {
      return kStorageAlignment;
    }
    std::vector<std::byte> scratch;
    const auto bytes = zip_.read(*record, scratch);
    if (!bytes) {
      return kStorageAlignment; // reported with the record
    }
    text = as_text(*bytes);
    const std::uint64_t value = parse_number<std::uint64_t>(text).value_or(0);
    return std::has_single_bit(value) ? value : 0;
  }

  // What mmap and offset calculation of PyTorch rely on.
  void check_layout() {
    std::string text;
    const std::uint64_t step = alignment(text);
    if (step == 0) {
      add_error(
          {.code = ErrorCode::kCorrupt,
           .message = format(
               "alignment of storages is '{}'; expected a power of two",
               escape(text)),
           .record = ".storage_alignment",
           .detail = "E_ALIGNMENT"});
      return;
    }
    std::uint64_t last_offset = 0;
    bool data_ended = false;
    bool in_data = false;
    for (const ZipRecord& record : zip_.records()) {
      if (record.header_offset < last_offset) {
        add_warning(
            "W_LAYOUT",
            "directory and file list the records in a different order",
            record.name);
      }
      last_offset = record.header_offset;
      if (!is_data(record)) {
        data_ended = data_ended || (in_data && !is_program_);
        continue;
      }
      in_data = true;
      if (data_ended) {
        add_warning(
            "W_LAYOUT",
            "another record lies between the storages",
            record.name);
        data_ended = false;
      }
      if (record.method != 0) {
        add_warning(
            "W_COMPRESSED",
            "torch.load(mmap=True) would return compressed bytes",
            record.name);
      } else if (record.data_offset % step != 0) {
        add_warning(
            "W_ALIGNMENT",
            format(
                "starts at {:#x}, not a multiple of {}",
                record.data_offset,
                step),
            record.name);
      }
    }
  }

  void check_unused() {
    if (!file_) {
      return;
    }
    std::set<std::string_view> used;
    for (const auto& storage : file_->storages) {
      used.insert(storage->key);
    }
    add_program_records(used);
    for (const ZipRecord& record : zip_.records()) {
      if (is_data(record) &&
          !used.contains(std::string_view(record.name).substr(kData.size()))) {
        add_warning("W_UNUSED", "no tensor uses the record", record.name);
      }
    }
  }

  // Also those that are pickles.
  void add_program_records(std::set<std::string_view>& used) const {
    if (file_->program == nullptr) {
      return;
    }
    for (const ExportedModel& model : file_->program->models) {
      for (const ExportedWeight& weight : model.weights) {
        used.insert(std::string_view(weight.record).substr(kData.size()));
      }
    }
  }

  void add_error(const Error& error) {
    report_.errors.push_back(finding_of(error));
  }

  void
  add_warning(std::string detail, std::string message, std::string record) {
    report_.warnings.push_back(
        {.detail = std::move(detail),
         .message = std::move(message),
         .record = std::move(record)});
  }

  ZipReader zip_;
  Result<Checkpoint> file_;
  bool is_program_;
  std::map<std::string, std::vector<std::string>> tensors_;
  VerifyReport report_;
};

using Loader = std::function<Result<Checkpoint>(const LoadOptions&)>;

// `source` is null for a folder.
Result<VerifyReport> judge_file(
    const std::shared_ptr<ByteSource>& source,
    const Loader& load_with,
    LoadOptions options) {
  options.strict = false; // warnings go into the report
  const auto given = options.limits.budget;
  if (source != nullptr) {
    options.limits = counting(options.limits, source->size());
  }
  LoadOptions unchecked = options;
  unchecked.check_crc = false; // each record is checked once, by its reader
  auto file = load_with(unchecked);
  if (file && !format_of(*file).is_archive) {
    options.limits.budget = given; // what is loaded again counts once
    LOCKSTEP_ASSIGN(const Checkpoint checked, load_with(options));
    return verify_storages(checked);
  }
  const bool is_foreign = !file && file.error().detail == "E_WRONG_FORMAT";
  if (source == nullptr || is_foreign) {
    return std::move(file).error();
  }
  auto zip = open_program_archive(source, options.limits);
  if (!zip) {
    return file ? std::move(zip).error() : std::move(file).error();
  }
  return Verifier(*std::move(zip), std::move(file)).run();
}

} // namespace

Result<VerifyReport> verify(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options) {
  return judge_file(
      source,
      [&](const LoadOptions& chosen) { return load(source, name, chosen); },
      options);
}

Result<VerifyReport>
verify(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  const Loader load_with = [&](const LoadOptions& chosen) {
    return load(path, chosen, fs);
  };
  const auto info = fs.stat(path);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return judge_file(nullptr, load_with, options);
  }
  LOCKSTEP_ASSIGN(
      const auto source,
      open_source(path, {.use_mmap = options.use_mmap}, fs));
  return judge_file(source, load_with, options);
}

} // namespace lockstep::ckpt
