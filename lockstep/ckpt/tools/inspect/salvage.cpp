// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/pickle/pickle.h"
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

// What is lost of a tree, and the tree without it.
class Losses {
 public:
  Losses(const Value& root, const Verdicts& verdicts) : verdicts_(verdicts) {
    mark_holders(root);
  }

  // Why a tensor is lost; empty for a sound one.
  [[nodiscard]] std::string reason(const Tensor& tensor) const {
    const auto verdict = verdicts_.find(tensor.storage.get());
    if (verdict != verdicts_.end() && !verdict->second.empty()) {
      return verdict->second;
    }
    return holds_lost(tensor.quantizer)
               ? "its scales or zero points are damaged or missing"
               : "";
  }

  void take_out(Value& root) const {
    root = is_lost(root) ? Value() : root;
    NodeWalk().run(root, [this](Value& node) {
      prune(node);
      return true;
    });
  }

 private:
  // Every value with a lost tensor below it, from these upwards.
  void mark_holders(const Value& root) {
    std::unordered_map<const void*, std::vector<const void*>> parents;
    std::vector<const void*> pending;
    NodeWalk().run(root, [&](const Value& node) {
      const Tensor* tensor = node.as_tensor();
      if (tensor != nullptr && !reason(*tensor).empty()) {
        pending.push_back(node.address());
      }
      for (std::size_t i = 0; i < child_count(node); ++i) {
        const Value& child = child_at(node, i);
        if (child.as_tensor() != nullptr || child_count(child) != 0) {
          parents[child.address()].push_back(node.address());
        }
      }
      return true;
    });
    while (!pending.empty()) {
      const void* node = pending.back();
      pending.pop_back();
      if (holders_.insert(node).second) {
        const auto& above = parents[node];
        pending.insert(pending.end(), above.begin(), above.end());
      }
    }
  }

  [[nodiscard]] bool holds_lost(const std::shared_ptr<Value>& value) const {
    return value != nullptr && holders_.contains(value->address());
  }

  // A call, such as that of a sparse tensor, needs all its arguments.
  [[nodiscard]] bool is_lost(const Value& value) const {
    if (const Tensor* tensor = value.as_tensor()) {
      return !reason(*tensor).empty();
    }
    const Object* object = value.as_object();
    return object != nullptr && holds_lost(object->args);
  }

  void erase_items(std::vector<Item>& items) const {
    std::erase_if(items, [this](const Item& item) {
      return holders_.contains(item.first.address()) || is_lost(item.second);
    });
  }

  void prune_place(std::shared_ptr<Value>& place) const {
    if (place != nullptr && is_lost(*place)) {
      place = nullptr;
    }
  }

  void prune(Value& value) const {
    if (Dict* dict = value.as_dict()) {
      erase_items(dict->items);
      erase_items(dict->attributes);
    } else if (Set* set = value.as_set()) {
      std::erase_if(set->items, [this](const Value& element) {
        return holders_.contains(element.address());
      });
    } else if (Object* object = value.as_object()) {
      erase_items(object->items);
      prune_place(object->state);
    } else if (Tensor* tensor = value.as_tensor()) {
      prune_place(tensor->attributes);
    } else if (value.elements() != nullptr) {
      for (std::size_t i = 0; i < child_count(value); ++i) {
        Value& element = child_at(value, i);
        element = is_lost(element) ? Value() : element;
      }
    }
  }

  const Verdicts& verdicts_;
  std::unordered_set<const void*> holders_;
};

// A tensor of the file before anything is taken out.
struct FoundTensor {
  std::string name = {};
  // An address only, once the tree has been pruned.
  const Tensor* tensor = nullptr;
  // Why it is lost; empty for a sound one.
  std::string reason = {};
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

Result<std::vector<FoundTensor>>
find_tensors(const Value& root, const Losses& losses, const Limits& limits) {
  std::vector<FoundTensor> found;
  LOCKSTEP_TRY(for_each_tensor(
      root,
      [&](const std::string& name, const Tensor& tensor) {
        found.push_back(
            {.name = name, .tensor = &tensor, .reason = losses.reason(tensor)});
      },
      bounds_of(limits)));
  return found;
}

// Sound tensors under their dotted names. Keys may look alike, 'a.b' and 'b' in
// 'a' for example: the second of two gets a number, which `warnings` tell.
Value flat_copy(
    const std::vector<FoundTensor>& found,
    std::vector<Warning>& warnings) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  std::set<std::string> taken;
  std::map<std::string, int> times;
  for (const FoundTensor& entry : found) {
    if (!entry.reason.empty()) {
      continue;
    }
    std::string name = entry.name;
    while (!taken.insert(name).second) {
      name = format("{} ({})", entry.name, ++times[entry.name] + 1);
    }
    if (name != entry.name) {
      warnings.push_back(
          {.name = "W_SAME_NAME",
           .text = format(
               "two tensors are named '{}'; the second is '{}' now",
               escape(entry.name),
               escape(name))});
    }
    dict.items.emplace_back(std::move(name), *entry.tensor);
  }
  return dict;
}

// A sound tensor goes, too, with an object that needs a lost one.
void note_left_behind(const Value& pruned, std::vector<FoundTensor>& found) {
  std::unordered_set<const Tensor*> kept;
  NodeWalk().run(pruned, [&kept](const Value& node) {
    kept.insert(node.as_tensor());
    return true;
  });
  for (FoundTensor& entry : found) {
    if (entry.reason.empty() && !kept.contains(entry.tensor)) {
      entry.reason = "it is a part of an object whose other parts are lost";
    }
  }
}

void count_tensors(
    const std::vector<FoundTensor>& found,
    SalvageReport& report) {
  for (const FoundTensor& entry : found) {
    if (entry.reason.empty()) {
      ++report.rescued;
    } else {
      report.lost.push_back({.name = entry.name, .reason = entry.reason});
    }
  }
}

} // namespace

Result<SalvageReport> salvage(
    const std::shared_ptr<ByteSource>& source,
    const std::string& out,
    const LoadOptions& options,
    const SaveOptions& save_options,
    FileSystem& fs) {
  LoadOptions checked = options;
  checked.limits = counting(options.limits, source->size());
  LOCKSTEP_ASSIGN(const Front front, examine_front(source, checked.limits));
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
  const Losses losses(opened.file.root, verdicts);
  LOCKSTEP_ASSIGN(
      auto found,
      find_tensors(opened.file.root, losses, checked.limits));
  WriteOptions saved{save_options};
  saved.extra_records =
      sound_records(opened.file.extra_records, report.lost_records);
  std::ranges::copy(front.lost, std::back_inserter(report.lost_records));
  note_lost_records(opened, report.lost_records);
  std::ranges::copy_if(
      opened.file.warnings,
      std::back_inserter(report.warnings),
      [](const Warning& warning) { return warning.name == "W_BYTEORDER"; });
  saved.byteorder_record = !opened.file.byteorder.empty();
  // The flat copy is made first: pruning changes the tree.
  std::vector<Warning> flat_warnings;
  const Value flat = flat_copy(found, flat_warnings);
  losses.take_out(opened.file.root);
  const auto pickle = write_pickle(opened.file.root);
  report.is_flat = !pickle && pickle.error().code == ErrorCode::kUnsupported;
  if (report.is_flat) {
    std::ranges::move(flat_warnings, std::back_inserter(report.warnings));
  } else {
    note_left_behind(opened.file.root, found);
  }
  count_tensors(found, report);
  if (!out.empty()) {
    LOCKSTEP_TRY(write_checkpoint(
        out,
        report.is_flat ? flat : opened.file.root,
        saved,
        fs));
  }
  return report;
}

} // namespace lockstep::ckpt
