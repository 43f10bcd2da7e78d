// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/formats/torchscript/script_era.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_recover.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

// What is wrong with each storage; empty text for a sound one.
using Verdicts = std::map<const Storage*, std::string>;

// Asking for one byte checks the whole record.
std::string judge_storage(const Storage& storage) {
  if (storage.source == nullptr) {
    return "its record is missing or truncated";
  }
  std::vector<std::byte> scratch;
  const auto bytes = storage.source->view(
      0,
      std::min<std::uint64_t>(storage.nbytes, 1),
      scratch);
  return bytes ? "" : bytes.error().message;
}

// Takes lost tensors out of a tree.
class Pruner {
 public:
  explicit Pruner(const Verdicts& verdicts) : verdicts_(verdicts) {}

  void run(const Value& root) {
    NodeWalk().run(root, [this](const Value& node) {
      prune(node);
      return true;
    });
  }

  [[nodiscard]] bool is_lost(const Value& value) const {
    if (const Tensor* tensor = value.as_tensor()) {
      const auto verdict = verdicts_.find(tensor->storage.get());
      return verdict != verdicts_.end() && !verdict->second.empty();
    }
    // A call, such as that of a sparse tensor, needs all its arguments.
    const Object* object = value.as_object();
    bool any_lost = false;
    if (object != nullptr && object->args != nullptr) {
      NodeWalk().run(*object->args, [&](const Value& node) {
        any_lost |= node.as_tensor() != nullptr && is_lost(node);
        return node.as_tuple() != nullptr;
      });
    }
    return any_lost;
  }

 private:
  void prune(const Value& value) {
    if (Dict* dict = value.as_dict()) {
      std::erase_if(dict->items, [this](const Item& item) {
        return is_lost(item.second);
      });
    }
    List* list = value.as_list();
    Tuple* tuple = value.as_tuple();
    auto* items = list != nullptr    ? &list->items
                  : tuple != nullptr ? &tuple->items
                                     : nullptr;
    if (items != nullptr) {
      for (Value& item : *items) {
        item = is_lost(item) ? Value() : item;
      }
    }
  }

  const Verdicts& verdicts_;
};

struct Remains {
  Checkpoint file = {};
  // Records beside the value that were cut, without root.
  std::vector<std::string> cut = {};
  // Records and folders of a TorchScript program.
  std::set<std::string> script = {};
  bool is_without_directory = false;
};

// Names of all local headers, in the order of the file.
std::vector<std::string> names_of(const RecoveredRecords& found) {
  std::vector<std::string> names;
  names.reserve(found.records.size() + found.lost.size());
  for (const ZipRecord& record : found.records) {
    names.push_back(record.name);
  }
  for (const LostRecord& record : found.lost) {
    names.push_back(record.name);
  }
  return names;
}

// Those of `names` that `zip` lacks and that are no part of the value: what is
// lost of that, the tensors tell.
std::vector<std::string> cut_records(
    const std::vector<std::string>& names,
    const ZipReader& zip,
    const Checkpoint& file) {
  std::set<std::string> known{"data.pkl"};
  for (const auto& storage : file.storages) {
    known.insert("data/" + storage->key);
  }
  const std::string root = std::string(zip.root()) + "/";
  std::vector<std::string> cut;
  for (const std::string& full : names) {
    if (!full.starts_with(root)) {
      continue; // of an archive inside a record
    }
    std::string name = full.substr(root.size());
    if (zip.find(name) == nullptr && !internal::is_frame_record(name) &&
        known.insert(name).second) {
      cut.push_back(std::move(name));
    }
  }
  return cut;
}

std::set<std::string> script_parts(
    const ZipReader& zip,
    const Checkpoint& file) {
  std::set<std::string> parts;
  for (const ZipRecord& record : zip.records()) {
    if (file.format == "torchscript" && is_script_record(record.name)) {
      const std::size_t slash = record.name.find('/');
      parts.insert(record.name.substr(
          0,
          slash == std::string::npos ? slash : slash + 1));
    }
  }
  return parts;
}

Result<Remains> open_remains(
    const std::shared_ptr<ByteSource>& source,
    const LoadOptions& options) {
  auto zip = ZipReader::open(source, options.limits);
  bool is_lost = false;
  std::vector<std::string> names;
  if (!zip) {
    LOCKSTEP_ASSIGN(auto found, recover_zip_records(*source, options.limits));
    is_lost = !keep_listed(*source, options.limits, found.records);
    if (found.records.empty()) {
      return std::move(zip).error();
    }
    names = names_of(found);
    zip =
        ZipReader::recovered(source, std::move(found.records), options.limits);
  }
  const auto reader = std::make_shared<const ZipReader>(*std::move(zip));
  LOCKSTEP_ASSIGN(Checkpoint file, read_zip_remains(reader, options));
  std::vector<std::string> cut = cut_records(names, *reader, file);
  std::set<std::string> script = script_parts(*reader, file);
  return Remains{
      .file = std::move(file),
      .cut = std::move(cut),
      .script = std::move(script),
      .is_without_directory = is_lost};
}

// The sound ones of those that can be written beside each other.
std::vector<ExtraRecord> sound_records(
    const std::vector<ExtraRecord>& records,
    std::vector<LostPart>& lost) {
  std::vector<ExtraRecord> sound;
  std::set<std::string> names;
  for (const ExtraRecord& record : records) {
    const Status status = internal::check_extra_records({&record, 1});
    std::string reason =
        status ? judge_storage(*record.content) : status.error().message;
    if (reason.empty() && !names.insert(lower_case(record.name)).second) {
      reason = "another record has this name";
    }
    if (reason.empty()) {
      sound.push_back(record);
    } else {
      lost.push_back({.name = record.name, .reason = std::move(reason)});
    }
  }
  return sound;
}

// Sound tensors under their dotted names.
Result<Value> flat_copy(const Value& root, const Verdicts& verdicts) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  LOCKSTEP_TRY(
      for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
        const auto verdict = verdicts.find(tensor.storage.get());
        if (verdict == verdicts.end() || verdict->second.empty()) {
          dict.items.emplace_back(name, tensor);
        }
      }));
  return Value(std::move(dict));
}

} // namespace

Result<SalvageReport> salvage(
    const std::shared_ptr<ByteSource>& source,
    const std::string& out,
    const LoadOptions& options,
    const SaveOptions& save_options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(const auto found, find_zip_start(*source));
  if (!found) {
    return Error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.repair",
        .message =
            "no zip checkpoint begins in the first 64 KiB of the file; "
            "only such files can be repaired",
        .detail = "E_WRONG_FORMAT"};
  }
  const std::uint64_t start = *found;
  LoadOptions checked = options;
  checked.check_crc = true;
  LOCKSTEP_ASSIGN(
      Remains opened,
      open_remains(
          slice_source(source, start, source->size() - start),
          checked));
  SalvageReport report{
      .foreign_bytes = start,
      .is_without_directory = opened.is_without_directory};
  Verdicts verdicts;
  for (const auto& storage : opened.file.storages) {
    verdicts.emplace(storage.get(), judge_storage(*storage));
  }
  LOCKSTEP_TRY(for_each_tensor(
      opened.file.root,
      [&](const std::string& name, const Tensor& tensor) {
        const auto verdict = verdicts.find(tensor.storage.get());
        if (verdict == verdicts.end() || verdict->second.empty()) {
          ++report.rescued;
        } else {
          report.lost.push_back({.name = name, .reason = verdict->second});
        }
      },
      options.limits.max_nodes));
  SaveOptions saved = save_options;
  saved.extra_records =
      sound_records(opened.file.extra_records, report.lost_records);
  for (std::string& name : opened.cut) {
    report.lost_records.push_back(
        {.name = std::move(name), .reason = "it is truncated"});
  }
  for (const std::string& name : opened.script) {
    report.lost_records.push_back(
        {.name = name,
         .reason = "it belongs to a TorchScript program; the new file has its "
                   "weights alone"});
  }
  std::ranges::copy_if(
      opened.file.warnings,
      std::back_inserter(report.warnings),
      [](const Warning& warning) { return warning.name == "W_BYTEORDER"; });
  saved.byteorder_record = !opened.file.byteorder.empty();
  // The flat copy is made first: pruning changes the tree.
  LOCKSTEP_ASSIGN(const Value flat, flat_copy(opened.file.root, verdicts));
  Pruner(verdicts).run(opened.file.root);
  const auto pickle = write_pickle(opened.file.root);
  report.is_flat = !pickle && pickle.error().code == ErrorCode::kUnsupported;
  if (!out.empty()) {
    LOCKSTEP_TRY(
        save(out, report.is_flat ? flat : opened.file.root, saved, fs));
  }
  return report;
}

} // namespace lockstep::ckpt
