// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "lockstep/tensor/internal/storage_bridge.h"
#include "lockstep/train/checkpoints.h"

namespace lockstep::train {
namespace {

/// Rebuilds the path from the root to each tensor; the rest is shared.
class TreeCopy {
 public:
  explicit TreeCopy(std::vector<at::Tensor>& blocks) : blocks_(blocks) {}

  /// What is reached twice stays one node: the file shows it.
  ckpt::Value copy(const ckpt::Value& value) {
    if (!value.is_container() && value.as_tensor() == nullptr) {
      return value;
    }
    if (const auto known = nodes_.find(value.address());
        known != nodes_.end()) {
      return known->second;
    }
    return nodes_.emplace(value.address(), copy_node(value)).first->second;
  }

 private:
  ckpt::Value copy_node(const ckpt::Value& value) {
    if (const ckpt::Tensor* tensor = value.as_tensor()) {
      ckpt::Tensor owned = *tensor;
      owned.storage = copy(tensor->storage);
      return owned;
    }
    if (const ckpt::Dict* dict = value.as_dict()) {
      return ckpt::Dict{
          .kind = dict->kind,
          .items = copy(dict->items),
          .attributes = copy(dict->attributes)};
    }
    if (const ckpt::List* list = value.as_list()) {
      return ckpt::List{.items = copy(list->items)};
    }
    if (const ckpt::Tuple* tuple = value.as_tuple()) {
      return ckpt::Tuple{.items = copy(tuple->items)};
    }
    if (const ckpt::Object* object = value.as_object()) {
      return ckpt::Object{
          .global = object->global,
          .args = copy(object->args),
          .state = copy(object->state),
          .items = copy(object->items)};
    }
    return value;
  }

  std::vector<ckpt::Item> copy(const std::vector<ckpt::Item>& items) {
    std::vector<ckpt::Item> owned;
    owned.reserve(items.size());
    for (const auto& [key, value] : items) {
      owned.emplace_back(key, copy(value));
    }
    return owned;
  }

  std::shared_ptr<ckpt::Value> copy(const std::shared_ptr<ckpt::Value>& value) {
    return value == nullptr ? nullptr
                            : std::make_shared<ckpt::Value>(copy(*value));
  }

  std::vector<ckpt::Value> copy(const std::vector<ckpt::Value>& items) {
    std::vector<ckpt::Value> owned;
    owned.reserve(items.size());
    for (const ckpt::Value& item : items) {
      owned.push_back(copy(item));
    }
    return owned;
  }

  std::shared_ptr<ckpt::Storage> copy(
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
  std::unordered_map<const void*, ckpt::Value> nodes_ = {};
};

} // namespace

ckpt::Value SnapshotBuffer::copy(const ckpt::Value& live) {
  return TreeCopy(blocks_).copy(live);
}

} // namespace lockstep::train
