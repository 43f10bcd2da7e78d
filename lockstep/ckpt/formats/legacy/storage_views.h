// SPDX-License-Identifier: BSD-3-Clause
//
// Views of storages. PyTorch up to 1.5 could save a storage that is a part of
// another one. Here a storage is whole: tensors on such a part become tensors
// on the whole with a larger offset, and go on sharing memory.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The views of one file.
class StorageViews {
 public:
  /// A storage over `numel` elements of `root`, which has its bytes by the time
  /// the view is loaded. Errors: kCorrupt (E_VIEW_BOUNDS) if it leaves `root`.
  Result<std::shared_ptr<Storage>>
  make(std::shared_ptr<Storage> root, std::int64_t offset, std::int64_t numel);

  /// Moves the tensors below `root` from views to whole storages. Bare storages
  /// stay what they are.
  void fold(Value& root) const;
  void fold(Tensor& tensor) const;

 private:
  struct View {
    std::shared_ptr<Storage> view = {};
    std::shared_ptr<Storage> root = {};
    // Units: bytes.
    std::uint64_t offset = 0;
  };

  std::unordered_map<const Storage*, View> views_;
};

} // namespace lockstep::ckpt
