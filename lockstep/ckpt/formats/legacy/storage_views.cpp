// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/legacy/storage_views.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

class ViewSource final : public StorageSource {
 public:
  ViewSource(
      std::shared_ptr<Storage> root,
      std::uint64_t offset,
      std::uint64_t length)
      : root_(std::move(root)), offset_(offset), length_(length) {}

  Result<ByteSpan> load() override {
    LOCKSTEP_ASSIGN(const ByteSpan bytes, root_->source->load());
    return bytes.subspan(offset_, length_);
  }

  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    return root_->source->view(offset_ + offset, length, scratch);
  }

  Status stream(const BlockVisitor& visit) override {
    return internal::stream_views(*this, length_, visit);
  }

 private:
  std::shared_ptr<Storage> root_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

} // namespace

Result<std::shared_ptr<Storage>> StorageViews::make(
    std::shared_ptr<Storage> root,
    std::int64_t offset,
    std::int64_t numel) {
  const std::uint64_t size = dtype_info(root->dtype).size;
  const std::uint64_t have = root->nbytes / size;
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto count = static_cast<std::uint64_t>(numel);
  if (offset < 0 || numel < 0 || begin > have || count > have - begin) {
    return corrupt_file(
        "E_VIEW_BOUNDS",
        format(
            "view reaches past its storage; expected at most {} elements, got "
            "offset {} and {} elements",
            have,
            offset,
            numel));
  }
  auto view = std::make_shared<Storage>(*root);
  view->nbytes = count * size;
  view->source = std::make_shared<ViewSource>(root, begin * size, view->nbytes);
  views_.emplace(
      view.get(),
      View{.view = view, .root = std::move(root), .offset = begin * size});
  return view;
}

void StorageViews::fold(Value& root) const {
  if (views_.empty()) {
    return;
  }
  NodeWalk().run(root, [this](Value& node) {
    if (Tensor* tensor = node.as_tensor()) {
      fold(*tensor);
    }
    return storage_of(node) == nullptr;
  });
}

void StorageViews::fold(Tensor& tensor) const {
  const auto found = views_.find(tensor.storage.get());
  const std::uint64_t size = dtype_info(tensor.dtype).size;
  if (found == views_.end() || found->second.offset % size != 0) {
    return;
  }
  tensor.storage = found->second.root;
  tensor.offset += static_cast<std::int64_t>(found->second.offset / size);
}

} // namespace lockstep::ckpt
