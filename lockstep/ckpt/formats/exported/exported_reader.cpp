// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/record_source.h"

namespace lockstep::ckpt {
namespace {

using internal::PayloadRow;

constexpr std::string_view kFormatRecord = "archive_format";
constexpr std::string_view kFormatName = "pt2";
constexpr std::string_view kModels = "models/";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kPacked = ".pt";
constexpr std::string_view kData = "data/";
constexpr std::string_view kCompiled = "data/aotinductor/";
// What newer ones call the program of an old archive.
constexpr std::string_view kOldName = "model";

/// Where a table of tensors and their records lie.
struct PayloadPlace {
  std::string_view folder = {};
  std::string_view table_end = {};
  /// The pickle beside `kOldGraphRecord`.
  std::string_view old_record = {};
  bool is_constant = false;
};

constexpr std::array kPlaces = {
    PayloadPlace{
        "data/weights/",
        "_weights_config.json",
        kOldWeightsRecord,
        false},
    PayloadPlace{
        "data/constants/",
        "_constants_config.json",
        kOldConstantsRecord,
        true}};

class ExportedReader {
 public:
  ExportedReader(
      std::shared_ptr<const ZipReader> zip,
      const LoadOptions& options,
      PartLoader load_part)
      : zip_(std::move(zip)), options_(options), load_part_(load_part) {}

  Result<ExportedFile> run() {
    LOCKSTEP_TRY(check_byteorder());
    ExportedFile file{.zip = zip_, .warnings = zip_->warnings()};
    for (const ZipRecord& record : zip_->records()) {
      const std::string name = model_name(record.name);
      if (!name.empty()) {
        if (!names_.insert(name).second) { // an old archive in a new one
          return corrupt_file(
              "E_PROGRAM",
              format("two programs are called '{}'", escape(name)),
              record.name);
        }
        LOCKSTEP_TRY(model(
            record,
            file.models.emplace_back(
                ExportedModel{.name = name, .record = record.name})));
      }
    }
    std::ranges::move(warnings_, std::back_inserter(file.warnings));
    if (file.models.empty()) {
      return no_program();
    }
    return file;
  }

 private:
  // Of "models/NAME.json"; empty for another record.
  static std::string model_name(std::string_view record) {
    if (record == kOldGraphRecord) {
      return std::string(kOldName);
    }
    if (!record.starts_with(kModels) || !record.ends_with(kJson)) {
      return {};
    }
    record.remove_prefix(kModels.size());
    record.remove_suffix(kJson.size());
    return std::string(record);
  }

  [[nodiscard]] Error no_program() const {
    const bool is_compiled =
        std::ranges::any_of(zip_->records(), [](const ZipRecord& record) {
          return std::string_view(record.name).starts_with(kCompiled);
        });
    if (is_compiled) {
      return read_error(
          ErrorCode::kUnsupported,
          "E_WRONG_FORMAT",
          "this is a package of AOTInductor, compiled code without a graph",
          "torch.export.save writes the program that it was made of");
    }
    return corrupt_file(
        "E_PROGRAM",
        "the archive has no program; expected a record models/NAME.json");
  }

  Status check_byteorder() {
    const ZipRecord* record = zip_->find("byteorder");
    if (record == nullptr) {
      return {};
    }
    LOCKSTEP_ASSIGN(
        const std::string order,
        record_text(*zip_, *record, options_));
    return order == "little"
               ? Status()
               : Status(read_error(
                     ErrorCode::kUnsupported,
                     "E_BYTEORDER",
                     format(
                         "the byte order of the program is '{}'; expected "
                         "'little'",
                         escape(order))));
  }

  Status model(const ZipRecord& record, ExportedModel& out) {
    LOCKSTEP_ASSIGN(
        const std::string json,
        record_text(*zip_, record, options_));
    LOCKSTEP_TRY(in_record(
        internal::read_model(json, record.name, options_.limits, out),
        record.name));
    LOCKSTEP_TRY(in_record(internal::check_model(out), record.name));
    for (const PayloadPlace& place : kPlaces) {
      LOCKSTEP_TRY(payloads(place, out));
    }
    LOCKSTEP_TRY(index_weights(out));
    return check_weights(out);
  }

  static Status index_weights(ExportedModel& model) {
    for (std::size_t i = 0; i < model.weights.size(); ++i) {
      const ExportedWeight& weight = model.weights[i];
      auto& index =
          weight.is_constant ? model.constant_index : model.weight_index;
      if (!index.emplace(weight.name, i).second) { // keys of a pickle
        return corrupt_file(
            "E_PROGRAM",
            format("two weights are called '{}'", escape(weight.name)),
            weight.record);
      }
    }
    return {};
  }

  Status payloads(const PayloadPlace& place, ExportedModel& model) {
    const std::string name =
        std::string(place.folder) + model.name + std::string(place.table_end);
    const ZipRecord* record = zip_->find(name);
    if (record == nullptr) {
      return packed(place, model);
    }
    LOCKSTEP_ASSIGN(
        const std::string json,
        record_text(*zip_, *record, options_));
    LOCKSTEP_ASSIGN(
        auto rows,
        in_record(internal::read_payloads(json, name, options_.limits), name));
    for (PayloadRow& row : rows) {
      ExportedWeight& out = model.weights.emplace_back(ExportedWeight{
          .name = std::move(row.name),
          .record = std::string(place.folder) + row.path,
          .is_parameter = row.is_parameter,
          .is_pickle = row.is_pickle,
          .is_constant = place.is_constant});
      if (!out.is_pickle) {
        LOCKSTEP_TRY(tensor(row.meta, out));
      }
    }
    return {};
  }

  // One pickle of all, as torch wrote before 2.9.
  Status packed(const PayloadPlace& place, ExportedModel& model) {
    const std::string name =
        model.record == kOldGraphRecord
            ? std::string(place.old_record)
            : std::string(place.folder) + model.name + std::string(kPacked);
    if (load_part_ == nullptr || zip_->find(name) == nullptr) {
      return {};
    }
    LOCKSTEP_ASSIGN(
        const Checkpoint part,
        in_record(read_exported_part(*zip_, name, options_, load_part_), name));
    const Dict* dict = part.root.as_dict();
    if (dict == nullptr) {
      return corrupt_file(
          "E_PROGRAM",
          format("expected a dict in '{}'", escape(name)));
    }
    for (const auto& [key, value] : dict->items) {
      if (const Tensor* tensor = value.as_tensor()) {
        model.weights.push_back(
            {.name = key_text(key),
             .record = name,
             .is_parameter = tensor->is_parameter,
             .is_packed = true,
             .is_constant = place.is_constant,
             .tensor = *tensor});
      } else {
        warnings_.push_back(
            {.name = "W_PROGRAM_PICKLE",
             .text = format(
                 "'{}' is a {} in a pickle, which is not read",
                 escape(key_text(key)),
                 value.type_name())});
      }
    }
    return {};
  }

  Status tensor(const ExportedTensorMeta& meta, ExportedWeight& out) {
    if (!meta.dtype || !meta.is_strided) {
      return read_error(
          ErrorCode::kUnsupported,
          "E_PROGRAM",
          format(
              "weight '{}' is a tensor of a layout or an element type that is "
              "not read",
              escape(out.name)),
          "export the net with strided tensors");
    }
    Tensor& view = out.tensor;
    view.dtype = *meta.dtype;
    view.is_parameter = out.is_parameter;
    view.requires_grad = meta.requires_grad;
    view.offset = meta.offset.value.value_or(0);
    const auto numbers = [](const std::vector<ExportedSize>& sizes,
                            std::vector<std::int64_t>& to) {
      for (const ExportedSize& size : sizes) {
        to.push_back(size.value.value_or(-1)); // an expression: check_view
      }
    };
    numbers(meta.sizes, view.sizes);
    numbers(meta.strides, view.strides);
    LOCKSTEP_ASSIGN(view.storage, storage(out, view.dtype));
    const Status status = check_view(view);
    if (status) {
      return {};
    }
    Error error = status.error();
    error.message = format("weight '{}': {}", escape(out.name), error.message);
    error.record = out.record;
    if (view.storage->nbytes == 0) {
      error.hint =
          "the file has no bytes for it: the net had fake weights when it was "
          "exported; save it with real ones";
    }
    return error;
  }

  Result<std::shared_ptr<Storage>> storage(
      const ExportedWeight& weight,
      DType dtype) {
    std::shared_ptr<Storage>& known = storages_[weight.record];
    if (known != nullptr) {
      return known;
    }
    const ZipRecord* record = zip_->find(weight.record);
    if (record == nullptr) {
      return corrupt_file(
          "E_NO_STORAGE",
          format(
              "the bytes of '{}' are missing; expected the record '{}'",
              escape(weight.name),
              escape(weight.record)));
    }
    known = std::make_shared<Storage>(Storage{
        .nbytes = record->size,
        .key = weight.record.substr(kData.size()),
        .dtype = dtype});
    known->source =
        record_source(zip_, *record, record->size, options_.checks_tensors());
    return known;
  }

  // Every parameter, buffer and constant that the graph takes has its tensor.
  static Status check_weights(const ExportedModel& model) {
    for (const ExportedInput& input : model.inputs) {
      if (input.is_tensor() && model.find_weight(input) == nullptr) {
        return corrupt_file(
            "E_NO_STORAGE",
            format(
                "the program takes '{}', which is not in its table of weights "
                "or of constants",
                escape(input.target)));
      }
    }
    return {};
  }

  std::shared_ptr<const ZipReader> zip_;
  const LoadOptions& options_;
  PartLoader load_part_;
  std::vector<Warning> warnings_;
  std::set<std::string> names_;
  std::map<std::string, std::shared_ptr<Storage>> storages_;
};

} // namespace

bool is_exported(const ZipReader& zip) {
  if (zip.find(kOldGraphRecord) != nullptr) {
    return true;
  }
  const ZipRecord* record =
      zip.find_in_any_case(kFormatRecord); // as PyTorch does
  if (record == nullptr || record->size != kFormatName.size()) {
    return false;
  }
  std::vector<std::byte> scratch;
  const auto bytes = zip.read(*record, scratch);
  return bytes && as_text(*bytes) == kFormatName;
}

Result<ZipReader> open_program_archive(
    std::shared_ptr<ByteSource> source,
    const Limits& limits) {
  auto zip = ZipReader::open(source, limits);
  if (zip || zip.error().detail != "E_ROOT") {
    return zip;
  }
  auto flat = ZipReader::open(std::move(source), limits, ZipForm::kFlat);
  return flat && is_exported(*flat) ? std::move(flat) : std::move(zip);
}

Result<ExportedFile> read_exported(
    std::shared_ptr<const ZipReader> zip,
    const LoadOptions& options,
    PartLoader load_part) {
  return ExportedReader(std::move(zip), options, load_part).run();
}

Result<Checkpoint> read_exported_part(
    const ZipReader& zip,
    const std::string& record,
    const LoadOptions& options,
    PartLoader load_part) {
  const ZipRecord* const found = zip.find(record);
  if (load_part == nullptr || found == nullptr || found->method != 0) {
    return read_error(
        ErrorCode::kUnsupported,
        "E_PROGRAM",
        format("'{}' is missing or compressed", escape(record)),
        "torch.export.save does not compress records: unpack the archive, and "
        "pack it with 'zip -0'");
  }
  if (options.checks_tensors()) { // its own records are compared, too
    LOCKSTEP_TRY(zip.check_crc(*found));
  }
  auto source = slice_source(zip.source(), found->data_offset, found->size);
  // Programs in programs would be read as deep as they are nested.
  const auto inner = open_program_archive(source, options.limits);
  if (inner && is_exported(*inner)) {
    return read_error(
        ErrorCode::kUnsupported,
        "E_PROGRAM",
        format("'{}' is another program", escape(record)));
  }
  auto part = load_part(source, record, options);
  if (!part) { // as if it lay in the file itself
    std::string& place = part.error().record;
    place = place.empty() ? record : format("{}!{}", record, place);
    part.error().path.clear();
  }
  return part;
}

} // namespace lockstep::ckpt
