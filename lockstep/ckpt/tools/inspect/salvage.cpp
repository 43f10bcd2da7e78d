// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/tools/inspect/remains.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_listed.h"
#include "lockstep/ckpt/zip/zip_recover.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using internal::Remains;
using internal::Verdicts;

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

  [[nodiscard]] bool is_lost(const Value& value) {
    if (const Tensor* tensor = value.as_tensor()) {
      const auto verdict = verdicts_.find(tensor->storage.get());
      return verdict != verdicts_.end() && !verdict->second.empty();
    }
    const Object* object = value.as_object();
    return object != nullptr && object->args != nullptr &&
           has_lost(*object->args);
  }

 private:
  // A call, such as that of a sparse tensor, needs all its arguments. Tuples of
  // them are looked at once, however often they are shared: depth first.
  bool has_lost(const Value& args) {
    const Tuple* tuple = args.as_tuple();
    if (tuple == nullptr) {
      return args.as_tensor() != nullptr && is_lost(args);
    }
    const auto [known, is_new] = lost_.try_emplace(tuple, false);
    if (is_new) {
      const bool any = std::ranges::any_of(
          tuple->items,
          [this](const Value& item) { return has_lost(item); });
      lost_[tuple] = any;
      return any;
    }
    return known->second;
  }

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
  // Tuples of arguments, in the tree as it was.
  std::unordered_map<const Tuple*, bool> lost_;
};

struct Front {
  // Units: bytes in front of the archive.
  std::uint64_t bytes = 0;
  std::vector<LostPart> lost = {};
};

// Readers of zip take the archive that the directory at the end describes,
// also behind another one. Errors: kUnsupported (E_WRONG_FORMAT) if there is
// none.
Result<Front> examine_front(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  LOCKSTEP_ASSIGN(const auto start, find_zip_start(*source));
  if (!start) {
    return Error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.repair",
        .message =
            "no zip checkpoint begins in the first 64 KiB of the file; "
            "only such files can be repaired",
        .detail = "E_WRONG_FORMAT"};
  }
  const auto archive = slice_source(source, *start, source->size() - *start);
  LOCKSTEP_ASSIGN(
      const std::uint64_t before,
      bytes_before_archive(archive, limits));
  Front front{.bytes = *start + before};
  LOCKSTEP_ASSIGN(const auto first, read_local_record(*archive, 0));
  if (before != 0 && first) {
    front.lost.push_back(
        {.name = first->name.substr(0, first->name.find('/') + 1),
         .reason = "it is another archive, in front of the last one"});
  }
  return front;
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
    verdicts.emplace(
        storage.get(),
        refused == remains.refused.end() ? judge_storage(*storage)
                                         : refused->second);
  }
  return verdicts;
}

void note_lost_records(const Remains& remains, std::vector<LostPart>& lost) {
  for (const std::string& name : remains.cut) {
    lost.push_back({.name = name, .reason = "it is truncated"});
  }
  for (const std::string& name : remains.foreign) {
    lost.push_back({.name = name, .reason = internal::kForeign});
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
  LOCKSTEP_ASSIGN(const Front front, examine_front(source, options.limits));
  LoadOptions checked = options;
  checked.check_crc = true;
  LOCKSTEP_ASSIGN(
      Remains opened,
      internal::open_remains(
          slice_source(source, front.bytes, source->size() - front.bytes),
          checked));
  SalvageReport report{
      .foreign_bytes = front.bytes,
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
  report.lost_records.insert(
      report.lost_records.end(),
      front.lost.begin(),
      front.lost.end());
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
