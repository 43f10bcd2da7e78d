// SPDX-License-Identifier: BSD-3-Clause
//
// Persistent ids of the legacy stream: storages, views of storages, and
// classes with their source. Bytes come later in the file; `read_blobs` finds
// them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/formats/legacy/storage_views.h"
#include "lockstep/ckpt/pickle/pickle_stream.h"

namespace lockstep::ckpt::internal {

class LegacyStorages final : public PersistentIdHandler {
 public:
  /// Errors: kCorrupt (E_TYPE, E_OVERFLOW, E_STORAGE_CONFLICT, E_VIEW_BOUNDS).
  Result<Value> resolve(const Value& id) override;

  /// Goes over the bytes after the list of keys and gives every storage its
  /// part of `source`. `root` gives the tensors' names in errors.
  /// Errors: kCorrupt (E_LEGACY_KEYS, E_LEGACY_NUMEL, E_LEGACY_SHORT).
  Status read_blobs(
      PickleStream& stream,
      const std::shared_ptr<ByteSource>& source,
      const Value& keys,
      const Value& root);

  /// Makes offsets of views of storages.
  void fold_views(Value& root) const {
    views_.fold(root);
  }

  /// In the order of first use.
  [[nodiscard]] const std::vector<std::shared_ptr<Storage>>& storages() const {
    return storages_;
  }
  [[nodiscard]] const std::vector<ClassSource>& class_sources() const {
    return class_sources_;
  }

 private:
  Result<Value> resolve_module(const Tuple& parts);
  Result<Value> resolve_view(
      const std::shared_ptr<Storage>& root,
      const Value& metadata);
  Status read_blob(
      PickleStream& stream,
      const std::shared_ptr<ByteSource>& source,
      std::size_t index,
      const std::string& key,
      const Value& root);

  std::vector<std::shared_ptr<Storage>> storages_;
  std::map<std::string, std::size_t, std::less<>> rows_;
  // By key of the view: its numbers, so that a second one can be compared.
  struct KnownView {
    std::string root_key = {};
    std::int64_t offset = 0;
    std::int64_t numel = 0;
    std::shared_ptr<Storage> storage = {};
  };
  std::map<std::string, KnownView, std::less<>> known_views_;
  StorageViews views_;
  std::vector<ClassSource> class_sources_;
};

} // namespace lockstep::ckpt::internal
