// SPDX-License-Identifier: BSD-3-Clause
//
// Training with uneven inputs. Ranks without inputs make the collectives of
// those that have some, in the order of Python's join context
// (torch/distributed/algorithms/join.py, _DDPJoinHook).
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/ddp_parts.h"
#include "lockstep/distributed/ddp/ddp_state.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/group/group_impl.h"

namespace lockstep {
namespace {

constexpr int kWarnAt = 1000;

at::Tensor one_number(double value, c10::Device device) {
  return at::full({1}, value, at::TensorOptions(device).dtype(at::kFloat));
}

[[noreturn]] void raise_uneven(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "dist.join",
       .message = std::move(message),
       .hint = "give all ranks the same number of batches, or leave out "
               "throw_on_early_termination",
       .detail = "E_UNEVEN_INPUTS"});
}

void warn_of_skew(int rank) {
  TORCH_WARN_ONCE(
      "Detected uneven input skew of greater than ",
      kWarnAt,
      ". This means that rank ",
      rank,
      " has at least ",
      kWarnAt,
      " fewer inputs than other currently-active ranks. This level of skew "
      "could lead to performance degradation during training.");
}

using TensorSet = std::unordered_set<const c10::TensorImpl*>;

/// `counts` has for each of `trained` how many ranks have used it.
TensorSet unused_among(
    const std::vector<at::Tensor>& trained,
    const at::Tensor& counts) {
  TensorSet unused;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (counts[static_cast<std::int64_t>(i)].item<int>() == 0) {
      unused.insert(trained[i].unsafeGetTensorImpl());
    }
  }
  return unused;
}

/// Gives the parameters of `bucket` what the ranks' gradients have become, as a
/// backward pass would; not the `unused`.
void take_gradients(
    c10d::GradBucket& bucket,
    const c10::IValue& result,
    const TensorSet& unused) {
  at::Tensor sum = c10d::detail::parseCppCommHookResult(result);
  bucket.setBuffer(sum);
  const auto gradients = bucket.getGradients();
  const auto parameters = bucket.getParameters();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (unused.contains(parameters[i].unsafeGetTensorImpl())) {
      continue;
    }
    at::Tensor& own = parameters[i].mutable_grad();
    if (own.defined()) {
      own.copy_(gradients[i]);
    } else {
      own = gradients[i].clone();
    }
  }
}

/// Ends what `JoinOptions` has switched on, also where an error leaves it.
class Joining {
 public:
  /// Python's ranks go on telling each other that they are there.
  Joining(bool& is_on, bool stays_on) : is_on_(is_on), stays_on_(stays_on) {}
  ~Joining() {
    is_on_ = stays_on_;
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

 private:
  bool& is_on_;
  bool stays_on_;
};

} // namespace

int DistributedDataParallelBase::State::common_rank(bool is_candidate) const {
  at::Tensor rank = at::full(
      {1},
      is_candidate ? group.rank() : -1,
      at::TensorOptions(device).dtype(at::kLong));
  group.all_reduce(rank, dist::ReduceOp::kMax);
  return rank.item<int>();
}

void DistributedDataParallelBase::State::tell_not_joined() const {
  c10::intrusive_ptr<c10d::Work> work;
  collective("join", [&] {
    std::vector<at::Tensor> here{one_number(1, device)};
    work = c10d_group()->allreduce(here);
    if (join.throw_on_early_termination) {
      at::Tensor ended = one_number(0, device);
      group.all_reduce(ended);
      if (ended.item<double>() != 0) {
        raise_uneven(
            "Detected at least one rank that exhausted inputs. Throwing across "
            "all ranks.");
      }
    }
  });
  // How many are left is what some divide by.
  reducer->set_forward_pass_work_handle(
      std::move(work),
      join.divide_by_initial_world_size);
}

bool DistributedDataParallelBase::State::any_averages(bool does) const {
  at::Tensor count = one_number(does ? 1 : 0, device);
  group.all_reduce(count);
  return count.item<double>() != 0;
}

void DistributedDataParallelBase::State::shadow_pass() {
  collective("rebuild_buckets", [&] { reducer->rebuild_buckets(); });
  if (buffers_are_due && syncs_buffers) {
    static_cast<void>(look_at_module());
    sync_buffers(common_rank(/*is_candidate=*/false));
  }
  buffers_are_due = any_averages(false);
  if (!buffers_are_due) {
    return;
  }
  collective("join", [&] {
    auto buckets = reducer->get_grad_buckets(/*return_zero_tensors=*/true);
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> sums;
    sums.reserve(buckets.size());
    for (c10d::GradBucket& bucket : buckets) {
      sums.push_back(reducer->run_comm_hook(bucket));
    }
    for (const auto& sum : sums) {
      sum->waitAndThrow();
    }
    TensorSet unused;
    if (options.find_unused_parameters) {
      std::vector<at::Tensor> used{reducer->get_local_used_map_on_device()};
      c10d_group()->allreduce(used)->wait();
      unused = unused_among(trained, used.front().cpu());
    }
    if (join.after_backward) {
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        take_gradients(buckets[i], sums[i]->value(), unused);
      }
    }
  });
  reducer->push_rebuilt_params_for_all_indices();
  if (join.after_backward) {
    join.after_backward();
  }
}

void DistributedDataParallelBase::State::take_last_model(bool is_last) const {
  const int src = common_rank(is_last);
  auto tensors = dist::internal::detached(parameters);
  if (options.forward_sync_buffers) {
    const auto buffers =
        dist::internal::detached(dist::internal::buffers_of(*module, options));
    tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  }
  collective("join", [&] {
    c10d::broadcast_coalesced(
        c10d_group(),
        tensors,
        dist::internal::kBroadcastBytes,
        src);
  });
}

void DistributedDataParallelBase::join(
    const std::function<void()>& train,
    const JoinOptions& options) {
  State& state = *state_;
  state.join = options;
  if (!options.enable) {
    train();
    return;
  }
  const Joining joining(state.join.enable, state.group.impl().has_python_ranks);
  state.compare_hooks();
  state.logger->set_uneven_input_join();
  train();
  bool is_last = true;
  for (int steps = 0;; ++steps) {
    if (steps > kWarnAt) {
      warn_of_skew(state.group.rank());
    }
    at::Tensor left = one_number(0, state.device);
    state.group.all_reduce(left);
    if (left.item<double>() == 0) {
      break;
    }
    if (options.throw_on_early_termination) {
      at::Tensor ended = one_number(1, state.device);
      state.group.all_reduce(ended);
      raise_uneven(format("Rank {} exhausted all inputs.", state.group.rank()));
    }
    state.shadow_pass();
    is_last = false;
  }
  state.take_last_model(is_last);
}

} // namespace lockstep
