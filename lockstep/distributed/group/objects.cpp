// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes travel first, then the bytes, padded to the longest: as in Python, so
// that ranks of both languages make the same collectives.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {
namespace {

/// A pickle, or with tensors a whole checkpoint file.
std::string bytes_of(const ckpt::Value& object) {
  auto pickled = ckpt::write_pickle(object).value();
  if (pickled.storages.empty()) {
    return std::move(pickled.pickle);
  }
  return ckpt::save_bytes(object).value();
}

ckpt::Value object_of(std::span<const std::byte> bytes) {
  if (ckpt::starts_like_pickle(as_text(bytes))) {
    return ckpt::read_pickle(bytes, nullptr).value().root;
  }
  const auto copy = std::make_shared<std::string>(as_text(bytes));
  const auto source = ckpt::make_source(as_byte_span(*copy), copy);
  return ckpt::load(source, "object").value().root;
}

at::Tensor tensor_of(
    const ProcessGroup& group,
    const std::string& bytes,
    std::int64_t size) {
  at::Tensor tensor = at::empty({size}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor.to(internal::object_device(group));
}

std::span<const std::byte> bytes_in(
    const at::Tensor& tensor,
    std::int64_t size) {
  return {
      static_cast<const std::byte*>(tensor.const_data_ptr()),
      static_cast<std::size_t>(size)};
}

at::Tensor size_tensor(const ProcessGroup& group, std::size_t size) {
  return at::scalar_tensor(
      static_cast<std::int64_t>(size),
      at::TensorOptions(internal::object_device(group)).dtype(at::kLong));
}

} // namespace

std::vector<ckpt::Value> all_gather_object(
    const ProcessGroup& group,
    const ckpt::Value& object) {
  const std::string own = bytes_of(object);
  std::vector<ckpt::Value> objects;
  for (const auto& bytes :
       group.all_gather_bytes(std::as_bytes(std::span(own)))) {
    objects.push_back(object_of(bytes));
  }
  return objects;
}

std::vector<ckpt::Value>
gather_object(const ProcessGroup& group, const ckpt::Value& object, int dst) {
  const std::string own = bytes_of(object);
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& size :
       group.all_gather(size_tensor(group, own.size()))) {
    sizes.push_back(size.item<std::int64_t>());
  }
  const auto tensors = group.gather(
      tensor_of(group, own, *std::ranges::max_element(sizes)),
      dst);
  std::vector<ckpt::Value> objects;
  objects.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    objects.push_back(object_of(bytes_in(tensors[i].cpu(), sizes[i])));
  }
  return objects;
}

ckpt::Value broadcast_object(
    const ProcessGroup& group,
    const ckpt::Value& object,
    int src) {
  const bool is_source = group.rank() == src;
  const std::string own = is_source ? bytes_of(object) : std::string();
  at::Tensor size = size_tensor(group, own.size());
  group.broadcast(size, src);
  const auto count = size.item<std::int64_t>();
  at::Tensor bytes = tensor_of(group, own, count);
  group.broadcast(bytes, src);
  return is_source ? object : object_of(bytes_in(bytes.cpu(), count));
}

} // namespace lockstep::dist
