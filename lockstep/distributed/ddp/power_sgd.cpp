// SPDX-License-Identifier: BSD-3-Clause
//
// The order of operations, of tensors in memory and of random numbers is that
// of torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py: it decides
// the bits.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/comm_hook.h"

namespace lockstep::dist {
namespace {

constexpr std::uint32_t kSeedLimit = 1'000'000'000;

void gram_schmidt(const at::Tensor& matrices, double epsilon) {
  const std::int64_t columns = matrices.size(2);
  for (std::int64_t i = 0; i < columns; ++i) {
    at::Tensor column = matrices.narrow(2, i, 1);
    at::Tensor length = at::linalg_vector_norm(column, 2, {1}, true);
    column.div_(epsilon == 0 ? length : length + epsilon);
    if (i + 1 < columns) {
      at::Tensor rest = matrices.narrow(2, i + 1, columns - i - 1);
      rest.sub_((column * rest).sum({1}, true) * column);
    }
  }
}

/// Shape: [count, rows, columns], columns <= rows; in place.
void orthogonalize(at::Tensor matrices, double epsilon) {
  constexpr std::int64_t kFewColumns = 2;
  const std::int64_t columns = matrices.size(2);
  if (columns <= kFewColumns || matrices.scalar_type() == at::kHalf ||
      matrices.scalar_type() == at::kBFloat16) {
    gram_schmidt(matrices, epsilon);
    return;
  }
  at::Tensor rest =
      at::empty({matrices.size(0), columns, columns}, matrices.options());
  at::linalg_qr_out(matrices, rest, matrices);
}

[[noreturn]] void refuse_options(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = std::move(message),
       .detail = "E_COMM_HOOK"});
}

[[noreturn]] void refuse_state(const std::string& key) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "dist.ddp",
       .message = format("'{}' is no part of PowerSGD's state", escape(key)),
       .hint = "load what PowerSGDState::state_dict gave",
       .detail = "E_COMM_HOOK"});
}

} // namespace

/// A bucket's gradients, divided into those that travel whole and those that
/// travel as P and Q.
struct PowerSGDState::Plan {
  std::vector<at::Tensor> whole = {};
  /// Shape of each: [count, rows, columns]; those of count 1 are views of the
  /// bucket, the others copies of what `parts` has.
  std::vector<at::Tensor> matrices = {};
  std::vector<std::vector<at::Tensor>> parts = {};
  std::int64_t p_size = 0;
  std::int64_t q_size = 0;
  /// Beside each of `matrices`: views of the memory of the bucket.
  std::vector<at::Tensor> ps = {};
  std::vector<at::Tensor> qs = {};
  bool has_new_qs = false;

  /// Matrices of equal shape stand together, in the order of the first of each.
  void add(const at::Tensor& matrix) {
    const auto same = std::ranges::find_if(parts, [&](const auto& group) {
      return group.front().sizes() == matrix.sizes();
    });
    same == parts.end() ? parts.push_back({matrix}) : same->push_back(matrix);
  }
  void arrange(bool batched);
};

void PowerSGDState::Plan::arrange(bool batched) {
  if (!batched) {
    std::vector<std::vector<at::Tensor>> single;
    for (const auto& group : parts) {
      for (const at::Tensor& matrix : group) {
        single.push_back({matrix});
      }
    }
    parts = std::move(single);
  }
  for (const auto& group : parts) {
    matrices.push_back(
        group.size() == 1 ? group.front().unsqueeze(0) : at::stack(group));
  }
}

PowerSGDState::PowerSGDState(const PowerSGDOptions& options)
    : options_(options), random_(options.random_seed) {
  if ((options.use_error_feedback || options.warm_start) &&
      options.start_power_sgd_iter <= 1) {
    refuse_options(
        "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or "
        "`warm_start` is enabled, because PowerSGD can only be applied after "
        "the first two iterations in DDP.");
  }
  if (options.matrix_approximation_rank < 1) {
    refuse_options(format(
        "matrix_approximation_rank: expected at least 1, got {}",
        options.matrix_approximation_rank));
  }
}

/// As numpy.random.RandomState.randint(1_000_000_000).
std::uint32_t PowerSGDState::next_seed() {
  constexpr std::uint32_t kMask = (1U << 30U) - 1;
  while (true) {
    ++draws_;
    const auto value = static_cast<std::uint32_t>(random_()) & kMask;
    if (value < kSeedLimit) {
      return value;
    }
  }
}

void PowerSGDState::count_step(const GradBucket& bucket) {
  iter_ += bucket.is_last() ? 1 : 0;
}

at::Tensor PowerSGDState::whole_average(
    const ProcessGroup& group,
    GradBucket& bucket) {
  count_step(bucket);
  return all_reduce_async(group, bucket.buffer().div_(group.size())).wait();
}

PowerSGDState::Plan PowerSGDState::plan(const GradBucket& bucket) {
  Plan plan;
  for (const at::Tensor& gradient : bucket.gradients()) {
    const std::int64_t size = gradient.numel();
    const std::int64_t rows = gradient.dim() == 0 ? 1 : gradient.size(0);
    const std::int64_t columns = size / std::max<std::int64_t>(rows, 1);
    const std::int64_t rank =
        std::min({rows, columns, options_.matrix_approximation_rank});
    const std::int64_t small = (rows + columns) * rank;
    const bool is_worth_it =
        static_cast<double>(small) * options_.min_compression_rate <
        static_cast<double>(size);
    counts_.before += size;
    counts_.after += is_worth_it ? small : size;
    if (is_worth_it) {
      plan.add(gradient.view({rows, columns}));
      plan.p_size += rows * rank;
      plan.q_size += columns * rank;
    } else {
      plan.whole.push_back(gradient);
    }
  }
  plan.arrange(options_.batch_tensors_with_same_shape);
  return plan;
}

/// Ps and Qs of a bucket lie together, and travel so.
void PowerSGDState::take_memory(Plan& plan, std::int64_t bucket) {
  plan.has_new_qs = !options_.warm_start || !p_memory_.contains(bucket);
  if (plan.has_new_qs) {
    const auto options = plan.whole.empty() ? plan.matrices.front().options()
                                            : plan.whole.front().options();
    p_memory_[bucket] = at::empty({plan.p_size}, options);
    q_memory_[bucket] = at::empty({plan.q_size}, options);
  }
  const auto view = [](const at::Tensor& memory,
                       std::int64_t& from,
                       std::array<std::int64_t, 3> shape) {
    const std::int64_t size = shape[0] * shape[1] * shape[2];
    from += size;
    return memory.narrow(0, from - size, size).view(shape);
  };
  std::int64_t p_from = 0;
  std::int64_t q_from = 0;
  for (const at::Tensor& matrix : plan.matrices) {
    const std::int64_t count = matrix.size(0);
    const std::int64_t rows = matrix.size(1);
    const std::int64_t columns = matrix.size(2);
    const std::int64_t rank =
        std::min({rows, columns, options_.matrix_approximation_rank});
    plan.ps.push_back(view(p_memory_[bucket], p_from, {count, rows, rank}));
    plan.qs.push_back(view(q_memory_[bucket], q_from, {count, columns, rank}));
  }
}

void PowerSGDState::fill_qs(Plan& plan) {
  at::Generator generator;
  if (plan.has_new_qs) {
    generator = at::detail::createCPUGenerator(next_seed());
  }
  for (at::Tensor& q : plan.qs) {
    if (plan.has_new_qs) {
      q.copy_(at::randn(
          q.sizes(),
          generator,
          at::TensorOptions().dtype(q.scalar_type())));
    }
    orthogonalize(q, options_.orthogonalization_epsilon);
  }
}

void PowerSGDState::compress(
    const ProcessGroup& group,
    Plan& plan,
    std::int64_t bucket) {
  for (std::size_t i = 0; i < plan.ps.size(); ++i) {
    at::bmm_out(plan.ps[i], plan.matrices[i], plan.qs[i]);
  }
  std::vector<at::Tensor> flat;
  flat.reserve(plan.whole.size());
  for (const at::Tensor& tensor : plan.whole) {
    flat.push_back(tensor.view({-1}));
  }
  const at::Tensor whole = flat.empty()
                               ? at::empty({0}, p_memory_[bucket].options())
                               : at::cat(flat);
  const at::Tensor sum = all_reduce_async(group, whole).wait();
  sum.div_(group.size());
  std::int64_t from = 0;
  for (const at::Tensor& tensor : plan.whole) {
    tensor.copy_(sum.narrow(0, from, tensor.numel()).view_as(tensor));
    from += tensor.numel();
  }
  // Not divided: only their directions matter.
  static_cast<void>(all_reduce_async(group, p_memory_[bucket]).wait());
  for (const at::Tensor& p : plan.ps) {
    orthogonalize(p, options_.orthogonalization_epsilon);
  }
  for (std::size_t i = 0; i < plan.ps.size(); ++i) {
    at::bmm_out(plan.qs[i], plan.matrices[i].transpose(1, 2), plan.ps[i]);
  }
  all_reduce_async(group, q_memory_[bucket]).wait().div_(group.size());
  for (std::size_t i = 0; i < plan.ps.size(); ++i) {
    at::bmm_out(plan.matrices[i], plan.ps[i], plan.qs[i].transpose(1, 2));
    for (std::size_t part = 0;
         plan.parts[i].size() > 1 && part < plan.parts[i].size();
         ++part) {
      plan.parts[i][part].copy_(
          plan.matrices[i][static_cast<std::int64_t>(part)]);
    }
  }
}

at::Tensor PowerSGDState::average(
    const ProcessGroup& group,
    GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  if (iter_ < options_.start_power_sgd_iter) {
    return whole_average(group, bucket);
  }
  const std::int64_t index = bucket.index();
  at::Tensor gradients = bucket.buffer();
  at::Tensor before;
  if (options_.use_error_feedback) {
    if (errors_.contains(index)) {
      gradients.add_(errors_[index]);
    }
    before = gradients.clone();
  }
  Plan matrices = plan(bucket);
  take_memory(matrices, index);
  fill_qs(matrices);
  compress(group, matrices, index);
  if (options_.use_error_feedback) {
    errors_[index] = before - gradients;
  }
  if (!options_.warm_start) {
    p_memory_.clear();
    q_memory_.clear();
  }
  count_step(bucket);
  return gradients;
}

StateDict PowerSGDState::state_dict() const {
  StateDict state;
  const auto options = at::TensorOptions(at::kLong);
  state.entries.emplace_back("iter", at::scalar_tensor(iter_, options));
  state.entries.emplace_back("draws", at::scalar_tensor(draws_, options));
  const auto add = [&](const char* kind, const auto& tensors) {
    for (const auto& [bucket, tensor] : tensors) {
      state.entries.emplace_back(format("{}.{}", kind, bucket), tensor.clone());
    }
  };
  add("error", errors_);
  add("p", p_memory_);
  add("q", q_memory_);
  return state;
}

void PowerSGDState::load_state_dict(const StateDict& state) {
  PowerSGDState read(options_);
  for (const auto& [key, tensor] : state.entries) {
    if (key == "iter" || key == "draws") {
      (key == "iter" ? read.iter_ : read.draws_) = tensor.item<std::int64_t>();
      continue;
    }
    const auto dot = key.find('.');
    const std::string kind = key.substr(0, dot);
    const auto bucket = dot == std::string::npos
                            ? std::nullopt
                            : parse_number<std::int64_t>(key.substr(dot + 1));
    if (!bucket || (kind != "error" && kind != "p" && kind != "q")) {
      refuse_state(key);
    }
    auto& to = kind == "error" ? read.errors_
               : kind == "p"   ? read.p_memory_
                               : read.q_memory_;
    to[*bucket] = tensor.clone();
  }
  read.random_.discard(static_cast<unsigned long long>(read.draws_));
  read.counts_ = counts_;
  *this = std::move(read);
}

CommHook power_sgd_hook(std::shared_ptr<PowerSGDState> state) {
  if (state == nullptr) {
    refuse_options("there is no state");
  }
  const PowerSGDOptions& options = state->options();
  return {
      .name = format(
          "powerSGD_hook rank {} from step {}",
          options.matrix_approximation_rank,
          options.start_power_sgd_iter),
      .run = [kept = std::move(state)](
                 const ProcessGroup& group,
                 GradBucket& bucket) -> TensorFuture {
        return kept->average(group, bucket);
      }};
}

} // namespace lockstep::dist
