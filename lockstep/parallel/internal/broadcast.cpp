// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/broadcast.h"

#include <cstring>
#include <map>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include "lockstep/tensor/internal/same_values.h"

namespace lockstep::parallel {
namespace {

constexpr std::size_t kTransferBytes = 10 << 20;

// Tensors that travel together, by place in the caller's lists.
using Batch = std::vector<std::size_t>;

void send(const TensorList& from, const TensorList& to, const Batch& batch) {
  if (batch.size() == 1) {
    to[batch.front()].copy_(from[batch.front()]);
    return;
  }
  TensorList flat;
  std::vector<std::int64_t> sizes;
  for (const std::size_t i : batch) {
    flat.push_back(from[i].reshape({-1}));
    sizes.push_back(from[i].numel());
  }
  const at::Tensor arrived = at::cat(flat).to(to[batch.front()].device());
  const TensorList pieces = arrived.split_with_sizes(sizes);
  for (std::size_t k = 0; k < batch.size(); ++k) {
    const at::Tensor& target = to[batch[k]];
    target.copy_(pieces[k].view(target.sizes()));
  }
}

// On one device there is nothing to gain by packing.
bool copy_here(const at::Tensor& from, const at::Tensor& to) {
  if (from.device() != to.device()) {
    return false;
  }
  if (from.is_cpu() && from.is_contiguous() && to.is_contiguous()) {
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  } else {
    to.copy_(from);
  }
  return true;
}

} // namespace

void SourceMark::note(const at::Tensor& source) {
  if (storage_._unsafe_get_target() !=
      source.storage().unsafeGetStorageImpl()) {
    storage_ = source.storage().getWeakStorageImpl();
  }
  offset_ = source.storage_offset();
  version_ =
      source.is_inference() ? 0 : static_cast<std::uint32_t>(source._version());
}

bool SourceMark::is_of(const at::Tensor& source) const {
  return !source.is_inference() &&
         storage_._unsafe_get_target() ==
             source.storage().unsafeGetStorageImpl() &&
         offset_ == source.storage_offset() &&
         version_ == static_cast<std::uint32_t>(source._version());
}

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

Moved copy_coalesced(const TensorList& from, const TensorList& to) {
  Moved moved;
  struct Pending {
    Batch batch = {};
    std::size_t bytes = 0;
  };
  std::map<at::ScalarType, Pending> pending;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].numel() == 0 || copy_here(from[i], to[i])) {
      continue;
    }
    Pending& group = pending[from[i].scalar_type()];
    if (group.bytes > 0 && group.bytes + from[i].nbytes() > kTransferBytes) {
      send(from, to, group.batch);
      ++moved.copies;
      group = {};
    }
    group.batch.push_back(i);
    group.bytes += from[i].nbytes();
    moved.bytes += from[i].nbytes();
  }
  for (const auto& [dtype, group] : pending) {
    if (!group.batch.empty()) {
      send(from, to, group.batch);
      ++moved.copies;
    }
  }
  return moved;
}

Moved copy_unseen(const TensorList& from, const TensorList& to) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return copy_coalesced(from, to);
}

Moved copy_buffers(
    const TensorList& masters,
    TensorList& mine,
    std::vector<BufferMark>& marks) {
  marks.resize(mine.size());
  TensorList counted;
  for (std::size_t b = 0; b < mine.size(); ++b) {
    const bool is_like = same_form(mine[b], masters[b]);
    if (!is_like) {
      mine[b].set_data(at::empty_like(masters[b], mine[b].device()));
    }
    const bool is_known = is_like && marks[b].sent.is_of(masters[b]) &&
                          marks[b].arrived.is_of(mine[b]);
    if (!is_known && !mine[b].is_inference() &&
        !(is_like && surely_same_values(mine[b], masters[b]))) {
      counted.push_back(mine[b]);
    }
  }
  const Moved moved = copy_unseen(masters, mine);
  for (const at::Tensor& buffer : counted) {
    buffer.unsafeGetTensorImpl()->bump_version();
  }
  for (std::size_t b = 0; b < mine.size(); ++b) {
    marks[b].sent.note(masters[b]);
    marks[b].arrived.note(mine[b]);
  }
  return moved;
}

} // namespace lockstep::parallel
