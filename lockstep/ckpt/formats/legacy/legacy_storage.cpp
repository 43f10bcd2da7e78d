// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/legacy/legacy_storage.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/storage_id.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_blob(
    std::string_view detail,
    std::string message,
    std::uint64_t offset) {
  return corrupt_file(detail, std::move(message), {}, offset);
}

// " of tensor 'x'", or nothing if no tensor has it.
std::string whose(const Value& root, const Storage* storage) {
  const std::string name = first_tensor_of(root, storage);
  return name.empty() ? "" : format(" of tensor '{}'", escape(name));
}

} // namespace

Result<Value> LegacyStorages::resolve(const Value& id) {
  const Tuple* parts = id.as_tuple();
  if (parts != nullptr && !parts->items.empty() &&
      parts->items[0].text() == "module") {
    return resolve_module(*parts);
  }
  LOCKSTEP_ASSIGN(
      const StorageId parsed,
      read_storage_id(id, kStorageIdParts + 1));
  const auto [row, is_new] =
      rows_.try_emplace(std::string(parsed.key), storages_.size());
  if (is_new) {
    storages_.push_back(make_storage(parsed, id));
  }
  const std::shared_ptr<Storage> first = storages_[row->second];
  LOCKSTEP_ASSIGN(const auto storage, named_again(parsed, id, first));
  if (storage != first) {
    storages_.push_back(storage);
  }
  if (parts->items.size() > kStorageIdParts &&
      !parts->items[kStorageIdParts].is_none()) {
    return resolve_view(storage, parts->items[kStorageIdParts]);
  }
  return Value(storage);
}

// ('module', class, source_file, source): stands for the class.
Result<Value> LegacyStorages::resolve_module(const Tuple& parts) {
  constexpr std::size_t kParts = 4;
  const Object* type =
      parts.items.size() != kParts ? nullptr : parts.items[1].as_object();
  if (type == nullptr) {
    return corrupt_file(
        "E_TYPE",
        "persistent id is not a tuple ('module', class, file, source)");
  }
  class_sources_.push_back(
      {.name = class_name_of(*type),
       .file = std::string(parts.items[2].text()),
       .text = std::string(parts.items[3].text())});
  return parts.items[1];
}

Result<Value> LegacyStorages::resolve_view(
    const std::shared_ptr<Storage>& root,
    const Value& metadata) {
  constexpr std::size_t kParts = 3;
  const Tuple* parts = metadata.as_tuple();
  const bool has_parts = parts != nullptr && parts->items.size() == kParts;
  const std::string* key = has_parts ? parts->items[0].as_string() : nullptr;
  const std::int64_t* offset = has_parts ? parts->items[1].as_int() : nullptr;
  const std::int64_t* numel = has_parts ? parts->items[2].as_int() : nullptr;
  if (key == nullptr || offset == nullptr || numel == nullptr) {
    return corrupt_file(
        "E_TYPE",
        "view of a storage is not a tuple (key, offset, numel)");
  }
  const auto known = known_views_.find(*key);
  if (known == known_views_.end()) {
    LOCKSTEP_ASSIGN(const auto view, views_.make(root, *offset, *numel));
    known_views_.emplace(*key, KnownView{root->key, *offset, *numel, view});
    return Value(view);
  }
  const KnownView& first = known->second;
  if (first.root_key != root->key || first.offset != *offset ||
      first.numel != *numel) {
    return corrupt_file(
        "E_STORAGE_CONFLICT",
        format(
            "view '{}' is {} elements at {} of storage '{}' here, but {} at {} "
            "of '{}' before",
            escape(*key),
            *numel,
            *offset,
            escape(root->key),
            first.numel,
            first.offset,
            escape(first.root_key)));
  }
  return Value(first.storage);
}

Status LegacyStorages::read_blobs(
    PickleStream& stream,
    const std::shared_ptr<ByteSource>& source,
    const Value& keys,
    const Value& root) {
  const std::uint64_t begin = stream.position();
  const List* list = keys.as_list();
  if (list == nullptr) {
    return bad_blob(
        "E_LEGACY_KEYS",
        format("expected a list of storage keys, got {}", keys.type_name()),
        begin);
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string* key = list->items[i].as_string();
    if (key == nullptr) {
      return bad_blob(
          "E_LEGACY_KEYS",
          format("key {} of the storages is not a string", i),
          begin);
    }
    LOCKSTEP_TRY(read_blob(stream, source, i, *key, root));
  }
  for (const auto& storage : storages_) {
    if (storage->source == nullptr) {
      return bad_blob(
          "E_LEGACY_KEYS",
          format(
              "the list of {} storages lacks '{}'{}; PyTorch would show "
              "uninitialised memory",
              list->items.size(),
              escape(storage->key),
              whose(root, storage.get())),
          begin);
    }
  }
  return {};
}

Status LegacyStorages::read_blob(
    PickleStream& stream,
    const std::shared_ptr<ByteSource>& source,
    std::size_t index,
    const std::string& key,
    const Value& root) {
  const std::uint64_t begin = stream.position();
  const auto row = rows_.find(key);
  const bool is_known = row != rows_.end();
  if (!is_known || storages_[row->second]->source != nullptr) {
    return bad_blob(
        "E_LEGACY_KEYS",
        format(
            "storage {} of the list, '{}', {}",
            index,
            escape(key),
            is_known ? "was listed before" : "is in no tensor"),
        begin);
  }
  Storage& storage = *storages_[row->second];
  const std::uint64_t need = storage.nbytes;
  const std::uint64_t size = dtype_info(storage.dtype).size;
  const auto cut = [&](std::uint64_t have) {
    return bad_blob(
        "E_LEGACY_SHORT",
        format(
            "the file ends inside storage {}{}; expected {} bytes, got {}",
            index,
            whose(root, &storage),
            need,
            have),
        begin);
  };
  const auto numel = stream.next_i64();
  if (!numel) {
    return cut(0);
  }
  if (*numel < 0 || static_cast<std::uint64_t>(*numel) != need / size) {
    return bad_blob(
        "E_LEGACY_NUMEL",
        format(
            "storage {}{} has a different size than the pickle says; expected "
            "{} "
            "elements, got {}",
            index,
            whose(root, &storage),
            need / size,
            *numel),
        begin);
  }
  const std::uint64_t offset = stream.position();
  if (!stream.skip(need)) {
    return cut(stream.remaining());
  }
  storage.source = make_range_storage(source, offset, need);
  return {};
}

} // namespace lockstep::ckpt::internal
