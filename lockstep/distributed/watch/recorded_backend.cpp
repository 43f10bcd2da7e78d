// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/recorded_backend.h"

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/ops/view_as_real.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/watch/recorded_work.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::dist::internal {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

/// The tensor that stands for a call; undefined if none does.
at::Tensor first_of(const Tensors& tensors) {
  return tensors.empty() ? at::Tensor() : tensors.front();
}

/// The same memory as real numbers: the backends move these, and a complex
/// number is two of them, also for a sum. Python's functions do the same.
at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

Tensors as_real(const Tensors& tensors) {
  Tensors reals;
  reals.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    reals.push_back(as_real(tensor));
  }
  return reals;
}

std::vector<Tensors> as_real(const std::vector<Tensors>& lists) {
  std::vector<Tensors> reals;
  reals.reserve(lists.size());
  for (const Tensors& list : lists) {
    reals.push_back(as_real(list));
  }
  return reals;
}

struct Call {
  std::string_view name = {};
  /// As `FlightEntry` has it.
  std::string how = {};
};

/// "max to rank 2"
std::string text_of(const c10d::ReduceOp& op, const std::string& root = {}) {
  static constexpr std::array kNames{
      "",
      "avg",
      "product",
      "min",
      "max",
      "band",
      "bor",
      "bxor",
      "premul_sum"};
  const std::string name = kNames.at(op.op_);
  return format("{}{}{}", name, name.empty() || root.empty() ? "" : " ", root);
}

class RecordedBackend final : public c10d::Backend {
 public:
  RecordedBackend(
      c10::intrusive_ptr<c10d::Backend> inner,
      std::shared_ptr<FlightRecorder> recorder,
      const FlightGroup& group)
      : c10d::Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        group_(std::make_shared<FlightGroup>(group)),
        carrier_(std::make_shared<Carrier>(inner_.get())),
        recorder_(std::move(recorder)) {}

  ~RecordedBackend() override {
    // The others see that this rank has left before they see its connections
    // close.
    recorder_.reset();
    carrier_->forget();
  }
  RecordedBackend(const RecordedBackend&) = delete;
  RecordedBackend& operator=(const RecordedBackend&) = delete;

  const std::string getBackendName() const override {
    return inner_->getBackendName();
  }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return inner_->getBackendOptions();
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    inner_->setTimeout(timeout);
  }
  void setSequenceNumberForGroup() override {
    inner_->setSequenceNumberForGroup();
  }
  std::uint64_t getSequenceNumberForGroup() override {
    return inner_->getSequenceNumberForGroup();
  }
  bool supportsTensorAlloc(c10::DeviceIndex device) override {
    return inner_->supportsTensorAlloc(device);
  }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    return inner_->allocateTensor(size, options);
  }
  void abort() override {
    inner_->abort();
  }
  void shutdown() override {
    inner_->shutdown();
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options)
      override {
    return record(
        {"broadcast", root("from", options.rootRank)},
        first_of(tensors),
        [&] { return inner_->broadcast(tensors, options); });
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options)
      override {
    return record(
        {"all_reduce", text_of(options.reduceOp)},
        first_of(tensors),
        [&] { return inner_->allreduce(tensors, options); });
  }
  WorkPtr allreduce_sparse(
      Tensors& tensors,
      const c10d::AllreduceOptions& options) override {
    return record(
        {"all_reduce", text_of(options.reduceOp)},
        first_of(tensors),
        [&] { return inner_->allreduce_sparse(tensors, options); });
  }
  WorkPtr allreduce_coalesced(
      Tensors& tensors,
      const c10d::AllreduceCoalescedOptions& options) override {
    return record(
        {"all_reduce_coalesced", text_of(options.reduceOp)},
        first_of(tensors),
        [&] { return inner_->allreduce_coalesced(tensors, options); });
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options)
      override {
    return record(
        {"reduce", text_of(options.reduceOp, root("to", options.rootRank))},
        first_of(tensors),
        [&] { return inner_->reduce(tensors, options); });
  }
  WorkPtr allgather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
    return record({"all_gather"}, first_of(inputs), [&] {
      auto to = as_real(outputs);
      auto from = as_real(inputs);
      return inner_->allgather(to, from, options);
    });
  }
  WorkPtr _allgather_base(
      at::Tensor& output,
      at::Tensor& input,
      const c10d::AllgatherOptions& options) override {
    return record({"all_gather_into_tensor"}, input, [&] {
      return inner_->_allgather_base(output, input, options);
    });
  }
  WorkPtr allgather_coalesced(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
    return record({"all_gather_coalesced"}, first_of(inputs), [&] {
      return inner_->allgather_coalesced(outputs, inputs, options);
    });
  }
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
    return record({"all_gather_coalesced"}, first_of(inputs), [&] {
      return inner_->allgather_into_tensor_coalesced(outputs, inputs, options);
    });
  }
  WorkPtr gather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::GatherOptions& options) override {
    return record(
        {"gather", root("to", options.rootRank)},
        first_of(inputs),
        [&] {
          auto to = as_real(outputs);
          auto from = as_real(inputs);
          return inner_->gather(to, from, options);
        });
  }
  WorkPtr scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ScatterOptions& options) override {
    return record(
        {"scatter", root("from", options.rootRank)},
        first_of(outputs),
        [&] {
          auto to = as_real(outputs);
          auto from = as_real(inputs);
          return inner_->scatter(to, from, options);
        });
  }
  WorkPtr reduce_scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ReduceScatterOptions& options) override {
    return record(
        {"reduce_scatter", text_of(options.reduceOp)},
        first_of(outputs),
        [&] {
          if (options.reduceOp != c10d::ReduceOp::SUM) {
            return inner_->reduce_scatter(outputs, inputs, options);
          }
          auto to = as_real(outputs);
          auto from = as_real(inputs);
          return inner_->reduce_scatter(to, from, options);
        });
  }
  WorkPtr _reduce_scatter_base(
      at::Tensor& output,
      at::Tensor& input,
      const c10d::ReduceScatterOptions& options) override {
    return record(
        {"reduce_scatter_tensor", text_of(options.reduceOp)},
        input,
        [&] { return inner_->_reduce_scatter_base(output, input, options); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::ReduceScatterOptions& options) override {
    return record(
        {"reduce_scatter_coalesced", text_of(options.reduceOp)},
        first_of(inputs),
        [&] {
          return inner_->reduce_scatter_tensor_coalesced(
              outputs,
              inputs,
              options);
        });
  }
  WorkPtr alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<std::int64_t>& output_sizes,
      std::vector<std::int64_t>& input_sizes,
      const c10d::AllToAllOptions& options) override {
    // Ranks may give parts of different sizes.
    return record({"all_to_all_single"}, at::Tensor(), [&] {
      return inner_
          ->alltoall_base(output, input, output_sizes, input_sizes, options);
    });
  }
  WorkPtr alltoall(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::AllToAllOptions& options) override {
    return record({"all_to_all"}, at::Tensor(), [&] {
      return inner_->alltoall(outputs, inputs, options);
    });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return record({"barrier"}, at::Tensor(), [&] {
      return inner_->barrier(options);
    });
  }

  // Between two ranks: they take no part in the count of the group.
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return inner_->send(tensors, to, tag);
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return inner_->recv(tensors, from, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return inner_->recvAnysource(tensors, tag);
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all)
      override {
    inner_->monitoredBarrier(options, wait_all);
  }

 private:
  /// "from rank 2", as a rank of the job; "" for the group's first, and for one
  /// that the backend refuses.
  [[nodiscard]] std::string root(std::string_view way, std::int64_t rank)
      const {
    const auto place = static_cast<std::size_t>(rank);
    return place == 0 || place >= group_->ranks.size()
               ? ""
               : format("{} rank {}", way, group_->ranks[place]);
  }

  template <class Start>
  WorkPtr
  record(const Call& call, const at::Tensor& tensor, const Start& start) {
    auto flight = std::make_shared<Flight>();
    flight->entry = {
        .number = ++count_,
        .name = call.name,
        .how = call.how,
        .group = group_->name};
    if (tensor.defined()) {
      flight->entry.dtype = format(
          "{}{}",
          tensor.is_sparse() ? "sparse " : "",
          c10::toString(tensor.scalar_type()));
      flight->entry.sizes = tuple_text(tensor.sizes());
      flight->entry.elements = tensor.numel();
    }
    flight->group = group_;
    flight->carrier = carrier_;
    recorder_->begin(flight);
    WorkPtr inner;
    try {
      recorder_->check_same(*flight);
      inner = start();
    } catch (const std::exception& error) {
      recorder_->end(*flight, true);
      const auto mistake =
          own_mistake(call.name, error, flight->entry.dtype.view());
      if (mistake && !ends_group(error)) {
        raise(*mistake);
      }
      throw;
    }
    return recorded_work(std::move(inner), std::move(flight), recorder_);
  }

  c10::intrusive_ptr<c10d::Backend> inner_;
  std::shared_ptr<const FlightGroup> group_;
  std::shared_ptr<Carrier> carrier_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::atomic<std::uint64_t> count_ = 0;
};

} // namespace

c10::intrusive_ptr<c10d::Backend> recorded(
    const c10::intrusive_ptr<c10d::Backend>& inner,
    const std::shared_ptr<FlightRecorder>& recorder,
    const FlightGroup& group) {
  return c10::make_intrusive<RecordedBackend>(inner, recorder, group);
}

} // namespace lockstep::dist::internal
