// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/allow_list.h"
#include "lockstep/ckpt/zip/record_source.h"

namespace lockstep::ckpt {
namespace {

// What `torch.export.save(extra_files=...)` adds.
constexpr std::string_view kExtraFolder = "extra/";

class WeightsTree {
 public:
  WeightsTree(const ReadInput& input, Checkpoint& file)
      : input_(input), file_(file) {}

  Result<Value> run(const ExportedModel& model) {
    Dict state{.kind = Dict::Kind::kOrderedDict};
    Dict constants;
    for (const ExportedWeight& weight : model.weights) {
      LOCKSTEP_ASSIGN(auto value, value_of(weight));
      if (value) {
        (weight.is_constant ? constants : state)
            .items.emplace_back(weight.name, *std::move(value));
      }
    }
    if (constants.items.empty()) {
      Value alone(state);
      if (!has_constants(alone)) {
        return alone;
      }
    }
    return Value::dict(
        {{kExportedState, std::move(state)},
         {kExportedConstants, std::move(constants)}});
  }

 private:
  // Nothing for a pickle that is not read.
  Result<std::optional<Value>> value_of(const ExportedWeight& weight) {
    if (!weight.is_pickle) {
      note_storage(weight.tensor.storage);
      return std::optional(Value(weight.tensor));
    }
    const auto known = pickles_.find(weight.record);
    if (known != pickles_.end()) {
      return known->second;
    }
    auto& value = pickles_[weight.record];
    auto part = read_exported_part(
        *file_.program->zip,
        weight.record,
        input_.options,
        input_.load_part);
    if (!part) {
      if (part.error().code == ErrorCode::kUnsafe ||
          part.error().code == ErrorCode::kIo) {
        return std::move(part).error();
      }
      file_.warnings.push_back(
          {.name = "W_PROGRAM_PICKLE",
           .text = format(
               "'{}' is a pickle that is not read: {}",
               escape(weight.name),
               part.error().message)});
      return value;
    }
    for (const auto& storage : part->storages) {
      note_storage(storage);
    }
    std::ranges::move(part->globals, std::back_inserter(file_.globals));
    std::ranges::move(part->warnings, std::back_inserter(file_.warnings));
    value = std::move(part->root);
    return value;
  }

  void note_storage(const std::shared_ptr<Storage>& storage) {
    if (seen_.insert(storage.get()).second) {
      file_.storages.push_back(storage);
    }
  }

  const ReadInput& input_;
  Checkpoint& file_;
  std::set<const Storage*> seen_;
  // By record, each read once; nothing for what is not read.
  std::map<std::string, std::optional<Value>> pickles_;
};

std::string era_of(const ExportedFile& program) {
  const ExportedModel& model = program.models.front();
  return format(
      "torch {}, schema {}.{}",
      model.torch_version.empty() ? "?" : escape(model.torch_version, 40),
      model.schema_major,
      model.schema_minor);
}

void add_extra_records(Checkpoint& file, const LoadOptions& options) {
  const auto& zip = file.program->zip;
  for (const ZipRecord& record : zip->records()) {
    if (record.name.starts_with(kExtraFolder)) {
      auto content = std::make_shared<Storage>(Storage{.nbytes = record.size});
      content->source =
          record_source(zip, record, record.size, options.checks_tensors());
      file.extra_records.push_back(
          {.name = record.name, .content = std::move(content)});
    }
  }
}

} // namespace

bool has_constants(const Value& program) {
  const Dict* dict = program.as_dict();
  const auto is_part = [&](std::size_t i, std::string_view name) {
    const auto& [key, part] = dict->items[i];
    return key.as_string() != nullptr && key.text() == name &&
           part.as_dict() != nullptr;
  };
  return dict != nullptr && dict->items.size() == 2 &&
         is_part(0, kExportedState) && is_part(1, kExportedConstants);
}

Result<Checkpoint> read_exported_checkpoint(
    const std::shared_ptr<const ZipReader>& zip,
    const ReadInput& input) {
  LOCKSTEP_ASSIGN(
      ExportedFile program,
      read_exported(zip, input.options, input.load_part));
  Checkpoint file{
      .format = "exported",
      .archive_name = zip->root(),
      .era = era_of(program),
      .byteorder = "little",
      .crc = zip->crc_state(),
      .file_bytes = zip->source()->size(),
      .warnings = std::move(program.warnings)};
  file.program = std::make_shared<const ExportedFile>(std::move(program));
  WeightsTree tree(input, file);
  Dict models;
  for (const ExportedModel& model : file.program->models) {
    LOCKSTEP_ASSIGN(Value root, tree.run(model));
    models.items.emplace_back(model.name, std::move(root));
  }
  file.root = models.items.size() == 1 ? std::move(models.items[0].second)
                                       : Value(std::move(models));
  add_extra_records(file, input.options);
  LOCKSTEP_TRY(check_allow_list(file, input.options, zip->root()));
  return file;
}

} // namespace lockstep::ckpt
