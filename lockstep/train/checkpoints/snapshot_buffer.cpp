// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "lockstep/ckpt/walk.h"
#include "lockstep/tensor/internal/storage_bridge.h"
#include "lockstep/train/checkpoints.h"

namespace lockstep::train {
namespace {

/// Tensors of their own, wherever a value holds one.
class SnapshotCopy final : public ckpt::TreeCopy {
 public:
  explicit SnapshotCopy(std::vector<at::Tensor>& blocks)
      : TreeCopy("train.save"), blocks_(blocks) {}

 private:
  Status change(ckpt::Value& copy) override {
    ckpt::Tensor* tensor = copy.as_tensor();
    if (tensor != nullptr && tensor->storage != nullptr) {
      tensor->storage = copied(tensor->storage);
    }
    return {};
  }

  std::shared_ptr<ckpt::Storage> copied(
      const std::shared_ptr<ckpt::Storage>& live) {
    auto& owned = copied_[live.get()];
    if (owned == nullptr) {
      const c10::Storage storage = to_torch_storage(*live);
      const auto size = static_cast<std::int64_t>(live->nbytes);
      at::Tensor& block = next_block(size);
      block.copy_(at::from_blob(storage.mutable_data(), {size}, at::kByte));
      owned = to_file_storage(block.storage(), live->dtype);
      owned->location = live->location;
    }
    return owned;
  }

  /// A block of `size` bytes: the one of last time, if it had that size.
  at::Tensor& next_block(std::int64_t size) {
    if (used_ == blocks_.size()) {
      blocks_.emplace_back();
    }
    at::Tensor& block = blocks_[used_++];
    if (!block.defined() || block.numel() != size) {
      block = at::empty({size}, at::kByte);
    }
    return block;
  }

  std::vector<at::Tensor>& blocks_;
  std::size_t used_ = 0;
  std::unordered_map<const ckpt::Storage*, std::shared_ptr<ckpt::Storage>>
      copied_ = {};
};

} // namespace

ckpt::Value SnapshotBuffer::copy(const ckpt::Value& live) {
  return SnapshotCopy(blocks_).copy(live).value();
}

} // namespace lockstep::train
