// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/made_tensors.h"

#include <set>
#include <utility>

#include <ATen/ops/equal.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>

#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local MadeTensors* made_here = nullptr;

void note_here(const at::Tensor& tensor) {
  if (made_here != nullptr) {
    made_here->note(tensor);
  }
}

const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                              : nullptr;
}

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.detach().contiguous().flatten().view(at::kByte);
}

// Memory of other devices and sparse tensors are not looked into.
bool is_unlike(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
    return true;
  }
  const bool is_plain = a.is_cpu() && b.is_cpu() && memory_of(a) != nullptr &&
                        memory_of(b) != nullptr && a.numel() != 0;
  return is_plain && !at::equal(bytes_of(a), bytes_of(b));
}

} // namespace

MadeTensors::MadeTensors() : outer_(std::exchange(made_here, this)) {
  install_stand_ins();
  watch_results(&note_here);
}

MadeTensors::~MadeTensors() {
  made_here = outer_;
  if (outer_ == nullptr) {
    watch_results(nullptr);
  }
}

void MadeTensors::note(const at::Tensor& tensor) {
  if (tensor.defined()) {
    tensors_.emplace_back(tensor.getIntrusivePtr());
  }
}

std::vector<at::Tensor> MadeTensors::unregistered_in(
    const torch::nn::Module& module) const {
  std::set<const void*> registered;
  for (const auto& tensors : {module.parameters(), module.buffers()}) {
    for (const at::Tensor& tensor : tensors) {
      registered.insert(tensor.unsafeGetTensorImpl());
      registered.insert(memory_of(tensor));
    }
  }
  registered.insert(nullptr);
  std::vector<at::Tensor> held;
  for (const Weak& weak : tensors_) {
    const at::Tensor tensor(weak.lock());
    if (tensor.defined() && !registered.contains(memory_of(tensor)) &&
        registered.insert(tensor.unsafeGetTensorImpl()).second) {
      held.push_back(tensor);
    }
  }
  return held;
}

std::vector<std::string> unlike_members(
    const MadeTensors& made,
    const torch::nn::Module& copy,
    const std::function<std::shared_ptr<torch::nn::Module>()>& make_spare) {
  const std::vector<at::Tensor> ours = made.unregistered_in(copy);
  if (ours.empty()) {
    return {};
  }
  const MadeTensors again;
  const auto spare = make_spare();
  const std::vector<at::Tensor> theirs = again.unregistered_in(*spare);
  std::vector<std::string> unlike;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs.size() != ours.size() || is_unlike(ours[i], theirs[i])) {
      unlike.push_back(c10::str(ours[i].scalar_type(), " ", ours[i].sizes()));
    }
  }
  return unlike;
}

} // namespace lockstep
