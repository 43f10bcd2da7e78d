// SPDX-License-Identifier: BSD-3-Clause
//
// Storages and tensors of a tar checkpoint: read before the pickle, which
// refers to them by number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/formats/legacy/storage_views.h"
#include "lockstep/ckpt/pickle/pickle_stream.h"

namespace lockstep::ckpt::internal {

class TarObjects final : public PersistentIdHandler {
 public:
  explicit TarObjects(const Limits& limits) : limits_(limits) {}

  /// The member `storages`: bytes, then views. Errors: kCorrupt (E_TAR,
  /// E_TRUNCATED, E_OVERFLOW, E_VIEW_BOUNDS and those of pickles).
  Status read_storages(const std::shared_ptr<ByteSource>& member);

  /// The member `tensors`, after `storages`. Errors: kCorrupt (E_TAR, E_RANK,
  /// E_VIEW_BOUNDS, ... and those of pickles).
  Status read_tensors(const std::shared_ptr<ByteSource>& member);

  /// A number as text, or (class, file, source). Errors: kCorrupt (E_TYPE,
  /// E_TAR).
  Result<Value> resolve(const Value& id) override;

  /// In the order of the file.
  std::vector<std::shared_ptr<Storage>> storages = {};
  std::vector<ClassSource> class_sources = {};
  /// Names in the pickles of the two members.
  std::vector<GlobalUse> globals = {};

 private:
  Result<Value> next(PickleStream& stream);
  Result<std::int64_t> next_count(PickleStream& stream);
  Status read_storage(
      PickleStream& stream,
      const std::shared_ptr<ByteSource>& member);
  Status read_views(PickleStream& stream);
  Status read_view(const Value& row);
  Status read_tensor(PickleStream& stream);
  Result<std::vector<std::int64_t>> next_integers(
      PickleStream& stream,
      std::int64_t count);
  Result<Tensor> empty_tensor(const Value& type) const;
  Status add(std::int64_t key, Value value);

  Limits limits_;
  std::map<std::int64_t, std::shared_ptr<Storage>> numbered_;
  // Storages and tensors by number.
  std::map<std::int64_t, Value> values_;
  StorageViews views_;
};

} // namespace lockstep::ckpt::internal
