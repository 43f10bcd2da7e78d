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
#include "lockstep/ckpt/zip/zip_listed.h"
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

constexpr const char* kForeign =
    "its record is of another file, whose directory is at the end";

struct Remains {
  Checkpoint file = {};
  // Records beside the value that were cut, without root.
  std::vector<std::string> cut = {};
  // Records and folders of a TorchScript program.
  std::set<std::string> script = {};
  // Records of another file, without root, that are no part of the value.
  std::set<std::string> foreign = {};
  // Why a storage does not count, or an empty text.
  Verdicts refused = {};
  bool is_without_directory = false;
};

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

// A record of another size than its storage is not the one that was saved with
// this pickle.
std::string refusal(
    const ZipReader& zip,
    const std::set<std::string>& foreign,
    const Storage& storage) {
  const std::string name = "data/" + storage.key;
  const ZipRecord* record = zip.find(name);
  if (record == nullptr) {
    return foreign.contains(name) ? kForeign : "";
  }
  return record->size <= storage.nbytes
             ? ""
             : format(
                   "its record may be of another file; expected {} bytes, got "
                   "{}",
                   storage.nbytes,
                   record->size);
}

// Records of another file that have no place here, without root.
std::set<std::string> foreign_names(
    const std::vector<std::string>& names,
    const ZipReader& zip) {
  std::set<std::string> foreign;
  for (const std::string& full : names) {
    std::string name = full.substr(full.find('/') + 1);
    if (zip.find(name) == nullptr && !internal::is_frame_record(name)) {
      foreign.insert(std::move(name));
    }
  }
  return foreign;
}

Result<Remains> read_found(
    const std::shared_ptr<ByteSource>& source,
    ListedRecords found,
    const LoadOptions& options) {
  const auto zip = std::make_shared<const ZipReader>(
      ZipReader::recovered(source, std::move(found.records), options.limits));
  LOCKSTEP_ASSIGN(Checkpoint file, read_zip_remains(zip, options));
  Remains remains{.is_without_directory = !found.has_directory};
  remains.cut = cut_records(found.names, *zip, file);
  remains.script = script_parts(*zip, file);
  remains.foreign = foreign_names(found.foreign, *zip);
  for (const auto& storage : file.storages) {
    remains.refused.emplace(
        storage.get(),
        refusal(*zip, remains.foreign, *storage));
  }
  for (const auto& storage : file.storages) {
    remains.foreign.erase("data/" + storage->key);
  }
  remains.file = std::move(file);
  return remains;
}

// True if the pickle has the checksum that the directory says.
bool has_sound_pickle(const ZipReader& zip) {
  const ZipRecord* pickle = zip.find("data.pkl");
  return pickle == nullptr || zip.check_crc(*pickle);
}

Result<Remains> open_remains(
    const std::shared_ptr<ByteSource>& source,
    const LoadOptions& options) {
  auto opened = ZipReader::open(source, options.limits);
  if (!opened || !has_sound_pickle(*opened)) {
    LOCKSTEP_ASSIGN(
        ListedRecords found,
        recover_listed_records(source, options.limits));
    if (opened || !found.records.empty()) {
      return read_found(source, std::move(found), options);
    }
    return std::move(opened).error();
  }
  const auto zip = std::make_shared<const ZipReader>(*std::move(opened));
  LOCKSTEP_ASSIGN(Checkpoint file, read_zip_remains(zip, options));
  std::set<std::string> script = script_parts(*zip, file);
  return Remains{.file = std::move(file), .script = std::move(script)};
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

Verdicts judge(const Remains& remains) {
  Verdicts verdicts;
  for (const auto& storage : remains.file.storages) {
    const auto refused = remains.refused.find(storage.get());
    const bool counts =
        refused == remains.refused.end() || refused->second.empty();
    verdicts.emplace(
        storage.get(),
        counts ? judge_storage(*storage) : refused->second);
  }
  return verdicts;
}

void note_lost_records(const Remains& remains, std::vector<LostPart>& lost) {
  for (const std::string& name : remains.cut) {
    lost.push_back({.name = name, .reason = "it is truncated"});
  }
  for (const std::string& name : remains.foreign) {
    lost.push_back({.name = name, .reason = kForeign});
  }
  for (const std::string& name : remains.script) {
    lost.push_back(
        {.name = name,
         .reason = "it belongs to a TorchScript program; the new file has its "
                   "weights alone"});
  }
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
  const Verdicts verdicts = judge(opened);
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
  note_lost_records(opened, report.lost_records);
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
