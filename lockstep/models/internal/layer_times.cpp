// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/layer_times.h"

#include <chrono>
#include <string_view>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lockstep/models/internal/forward_trace.h"
#include "lockstep/tensor/internal/operations.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using internal::plain_name;
using internal::storage_of;
using internal::storages_of;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kOurs = "lockstep::";

} // namespace

void finish_work(c10::Device device) {
  if (!device.is_cpu()) {
    c10::impl::getDeviceGuardImpl(device.type())
        ->synchronizeDevice(device.index());
  }
}

/// Note [Gradients and their layers]
/// An operation is told the number of the autograd node it is about to make,
/// and the node says that number when it runs backward, inside the engine's own
/// entry. Operations that make no node are told the number of the next one: the
/// last to be told it made it.
class LayerClock::Observation final : public OperationListener {
 public:
  explicit Observation(LayerClock& clock) : clock_(clock) {}

  void on_start(const at::RecordFunction& op, int depth) override {
    if (depth == 0) {
      is_backward_ = false;
      row_.reset();
      nodes_.clear();
      kernels_.clear();
      since_ = Clock::now();
    }
    if (op.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      is_backward_ = true;
      const auto made_by = rows_.find(op.seqNr());
      if (!row_ && made_by != rows_.end()) {
        row_ = made_by->second;
      }
    } else if (op.seqNr() >= 0) {
      nodes_.push_back(op.seqNr());
    }
    if (const std::string_view name = op.name(); name.starts_with(kOurs)) {
      kernels_.emplace(name.substr(kOurs.size()));
    }
    if (!row_) {
      find_owner(op.inputs());
    }
  }

  void on_end(const at::RecordFunction& op, int depth) override {
    if (depth > 0) {
      return;
    }
    finish_work(clock_.device_);
    const std::chrono::duration<double> took = Clock::now() - since_;
    const std::size_t row =
        row_ ? *row_ : clock_.row_of_operation(plain_name(op.name()));
    LayerTime& layer = clock_.layers_[row];
    (is_backward_ ? layer.backward_seconds : layer.forward_seconds) +=
        took.count();
    layer.kernels.merge(kernels_);
    if (!is_backward_) {
      for (const std::int64_t node : nodes_) {
        rows_[node] = row;
      }
    }
  }

 private:
  void find_owner(c10::ArrayRef<const c10::IValue> inputs) {
    for (const void* input : storages_of(inputs)) {
      const auto owner = clock_.owners_.find(input);
      if (owner != clock_.owners_.end()) {
        row_ = owner->second;
        return;
      }
    }
  }

  LayerClock& clock_;
  /// The rows of autograd's nodes by their numbers.
  std::unordered_map<std::int64_t, std::size_t> rows_ = {};

  // Of the operation that runs, if any does: whose it is, which nodes it was
  // told of, which kernels took part.
  bool is_backward_ = false;
  std::optional<std::size_t> row_ = {};
  std::vector<std::int64_t> nodes_ = {};
  std::set<std::string> kernels_ = {};
  Clock::time_point since_ = {};
};

LayerClock::LayerClock(const torch::nn::Module& module) {
  add("", module);
  // Without the module itself: it may lie on the stack.
  for (const auto& entry :
       module.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    add(entry.key(), *entry.value());
  }
}

void LayerClock::add(const std::string& name, const torch::nn::Module& module) {
  const auto parameters = module.named_parameters(/*recurse=*/false);
  if (parameters.is_empty()) {
    return;
  }
  for (const auto& parameter : parameters) {
    owners_.emplace(storage_of(parameter.value()), layers_.size());
    device_ = parameter.value().device();
  }
  layers_.push_back({.name = name, .type = class_name(module)});
}

void LayerClock::observe(const std::function<void()>& step) {
  Observation observation(*this);
  finish_work(device_);
  observe_operations(
      observation,
      step,
      {.has_backward_threads = !device_.is_cpu()});
}

std::size_t LayerClock::row_of_operation(const std::string& name) {
  const auto [row, is_new] = operations_.try_emplace(name, layers_.size());
  if (is_new) {
    layers_.push_back({.name = name});
  }
  return row->second;
}

} // namespace lockstep
