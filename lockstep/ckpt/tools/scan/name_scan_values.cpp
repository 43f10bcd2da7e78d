// SPDX-License-Identifier: BSD-3-Clause
//
// What tells how long the raw bytes behind a pickle are: ids of storages, a
// list of keys, the value at STOP.
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt::internal {

using Kind = Sketch::Kind;

Sketch NameScan::new_list(std::span<const Sketch> items) {
  if (!options_.collect_texts || has_list_) {
    return {.kind = Kind::kNoText};
  }
  has_list_ = true;
  add_keys(items);
  return {.kind = Kind::kKeys};
}

void NameScan::add_keys(std::span<const Sketch> items) {
  for (const Sketch& item : items) {
    if (item.kind != Kind::kText) {
      spoil_keys();
    }
    if (is_list_spoiled_) {
      return;
    }
    auto& shared = shared_[item.index];
    if (shared == nullptr) {
      shared = std::make_shared<const std::string>(text_of(item));
    }
    result_.texts.push_back(shared);
  }
}

// Something may be in the list that the scan does not see.
void NameScan::spoil_keys() {
  is_list_spoiled_ = true;
  result_.texts.clear();
}

void NameScan::note_root(const Sketch& root) {
  if (root.kind == Kind::kNumber || root.kind == Kind::kNone ||
      root.kind == Kind::kText) {
    result_.root = PickleRoot::kPlain;
  } else if (root.kind == Kind::kTriple && !result_.has_changed_names) {
    result_.root = PickleRoot::kTriple;
    result_.root_class = text_of(root);
  } else if (root.kind == Kind::kKeys && !is_list_spoiled_) {
    result_.root = PickleRoot::kTexts;
  }
}

// ("module", class, file, source)
bool NameScan::is_module_id(const Sketch& id) const {
  constexpr std::string_view kModule = "module";
  return (id.kind == Kind::kStorageId &&
          text_of(tuples_[id.index][0]) == kModule) ||
         (id.kind == Kind::kTexts && text_of(id) == kModule);
}

// ("storage", class, key, location, elements, view), where a view is None or
// (key, offset, elements). Gives what Python has in its place.
Sketch NameScan::persistent(const Sketch& id) {
  if (is_module_id(id)) {
    // The class of one that is no name may be changed unseen.
    result_.has_changed_names =
        result_.has_changed_names || id.kind != Kind::kStorageId;
    return id.kind == Kind::kStorageId ? tuples_[id.index][1] : Sketch{};
  }
  if (id.kind != Kind::kStorageId ||
      text_of(tuples_[id.index][0]) != "storage") {
    result_.has_unknown_ids = true;
    result_.has_changed_names = true;
    return {};
  }
  const auto& [word, type, key, view] = tuples_[id.index];
  const auto dtype = storage_class_dtype(text_of(type));
  add_storage(key, dtype);
  if (view.kind == Kind::kTexts) {
    add_storage(view, dtype);
  } else if (view.kind != Kind::kNone) {
    result_.has_unknown_ids = true;
  }
  return {.kind = Kind::kStorage};
}

void NameScan::add_storage(const Sketch& key, std::optional<DType> dtype) {
  if (keys_.insert(key.index).second) {
    result_.storages.push_back(
        {.key = std::string(text_of(key)), .dtype = dtype});
  }
}

} // namespace lockstep::ckpt::internal
