// SPDX-License-Identifier: BSD-3-Clause
//
// What each call does, and in which order, is wire format: Python's
// torch.nn.parallel.DistributedDataParallel of the same minor version does the
// same (torch/nn/parallel/distributed.py: _pre_forward, _post_forward).
#include "lockstep/dist/distributed_data_parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/dist/internal/ddp_parts.h"
#include "lockstep/dist/internal/group_impl.h"
#include "lockstep/dist/internal/output_sink.h"
#include "lockstep/tensor/compat.h"

namespace lockstep {
namespace {

using dist::internal::ModuleParts;
using dist::internal::NamedTensor;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::size_t kBroadcastBytes = 250 * kMiB;
constexpr std::int64_t kFirstBucketBytes = kMiB;
constexpr std::int64_t kBucketBytes = 25 * kMiB;

/// How many bytes of gradients go together.
struct BucketLimits {
  std::vector<std::size_t> initial = {};
  std::int64_t first = kFirstBucketBytes;
  std::int64_t others = kBucketBytes;
};

BucketLimits limits_of(const DistributedDataParallelOptions& options) {
  BucketLimits limits;
  if (options.bucket_cap_mb) {
    limits.others = static_cast<std::int64_t>(*options.bucket_cap_mb * kMiB);
    limits.first = limits.others;
  }
  if (options.static_graph || !options.find_unused_parameters) {
    // The order of gradients is not known yet: one bucket for each dtype.
    limits.initial = {std::numeric_limits<std::int64_t>::max()};
  } else if (options.bucket_cap_mb) {
    limits.initial = {static_cast<std::size_t>(limits.others)};
  } else {
    limits.initial = {
        static_cast<std::size_t>(limits.first),
        static_cast<std::size_t>(limits.others)};
  }
  return limits;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& part : named) {
    tensors.push_back(part.tensor);
  }
  return tensors;
}

std::unordered_map<std::size_t, std::string> names_of(
    const std::vector<NamedTensor>& named) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < named.size(); ++i) {
    names[i] = named[i].name;
  }
  return names;
}

std::shared_ptr<c10d::Reducer> make_reducer(
    const ModuleParts& parts,
    const DistributedDataParallelOptions& options,
    const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  const BucketLimits limits = limits_of(options);
  const auto parameters = tensors_of(parts.trained);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters,
      limits.initial,
      parts.is_sparse));
  // Gradients come in about the reverse order of the parameters.
  std::ranges::reverse(buckets);
  return std::make_shared<c10d::Reducer>(
      parameters,
      std::move(buckets),
      group,
      parts.is_sparse,
      limits.others,
      options.find_unused_parameters,
      options.gradient_as_bucket_view,
      names_of(parts.trained),
      limits.first,
      /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false,
      std::vector<std::int64_t>());
}

void check_bucket_cap(const DistributedDataParallelOptions& options) {
  if (options.bucket_cap_mb &&
      (!std::isfinite(*options.bucket_cap_mb) || *options.bucket_cap_mb <= 0)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = format(
             "bucket_cap_mb: expected a number above 0, got {}",
             *options.bucket_cap_mb),
         .detail = "E_CANNOT_WRAP"});
  }
}

} // namespace

struct DistributedDataParallelBase::State {
  dist::ProcessGroup group = {};
  DistributedDataParallelOptions options = {};
  std::shared_ptr<torch::nn::Module> module = {};
  c10::Device device = c10::kCPU;
  std::shared_ptr<c10d::Reducer> reducer = {};
  /// After the reducer, which it measures.
  std::shared_ptr<c10d::Logger> logger = {};
  std::shared_ptr<dist::internal::FirstBackward> first_backward = {};
  /// Whether forward passes take over rank 0's buffers at all.
  bool syncs_buffers = false;
  /// False inside no_sync.
  bool averages = true;
  /// Whether the next forward pass takes over rank 0's buffers.
  bool buffers_are_due = true;

  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& c10d_group()
      const {
    return group.impl().group;
  }
  void collective(const char* name, const std::function<void()>& run) const {
    group.impl().collective(name, run);
  }

  void start(const ModuleParts& parts);
  void sync_buffers() const;
  [[nodiscard]] bool finds_unused() const {
    return options.find_unused_parameters && !options.static_graph;
  }
};

void DistributedDataParallelBase::State::start(const ModuleParts& parts) {
  if (options.init_sync) {
    collective("ddp", [&] {
      c10d::verify_params_across_processes(
          c10d_group(),
          tensors_of(parts.trained),
          std::nullopt);
      auto all = dist::internal::detached(parts.parameters);
      const auto buffers = dist::internal::detached(parts.buffers);
      all.insert(all.end(), buffers.begin(), buffers.end());
      c10d::broadcast_coalesced(c10d_group(), all, kBroadcastBytes, 0);
    });
  }
  reducer = make_reducer(parts, options, c10d_group());
  logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  logger->set_construction_data_and_log(
      module->name(),
      /*device_ids=*/{},
      /*output_device=*/-1,
      options.forward_sync_buffers,
      /*has_sync_bn=*/false,
      options.static_graph);
  if (options.static_graph) {
    reducer->set_static_graph();
    first_backward = std::make_shared<dist::internal::FirstBackward>();
    first_backward->at_end = [kept = reducer] { kept->delay_all_reduce(); };
  }
}

// The graph of an earlier forward pass may hold a buffer: its version must not
// change, as if nothing had been written.
void DistributedDataParallelBase::State::sync_buffers() const {
  const at::NoGradGuard no_grad;
  const auto buffers = tensors_of(dist::internal::buffers_of(*module, options));
  if (buffers.empty()) { // their modules were taken out
    return;
  }
  std::vector<std::uint32_t> versions;
  versions.reserve(buffers.size());
  for (const at::Tensor& buffer : buffers) {
    versions.push_back(buffer.is_inference() ? 0 : buffer._version());
  }
  collective("sync_buffers", [&] {
    c10d::broadcast_coalesced(c10d_group(), buffers, kBroadcastBytes, 0);
  });
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].is_inference()) {
      auto counter = torch::autograd::impl::version_counter(buffers[i]);
      counter.set_version(versions[i]);
    }
  }
}

DistributedDataParallelBase::DistributedDataParallelBase(
    const std::shared_ptr<torch::nn::Module>& module,
    const DistributedDataParallelOptions& options)
    : torch::nn::Module("DistributedDataParallel"),
      state_(std::make_unique<State>()) {
  check_torch_version();
  if (module == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = "there is no module to wrap",
         .detail = "E_CANNOT_WRAP"});
  }
  check_bucket_cap(options);
  register_module("module", module);
  state_->group =
      options.process_group ? options.process_group : dist::default_group();
  state_->options = options;
  state_->module = module;
  const ModuleParts parts = dist::internal::parts_of(*module, options);
  // Asked once, as in Python: the ranks must agree on it.
  state_->syncs_buffers =
      options.forward_sync_buffers && !parts.buffers.empty();
  state_->device = parts.parameters.front().tensor.device();
  auto& group = state_->group.impl();
  if (!group.has_python_ranks) {
    dist::internal::check_equal(
        group,
        dist::internal::fingerprint(parts, options));
  }
  state_->start(parts);
}

DistributedDataParallelBase::~DistributedDataParallelBase() = default;

const dist::ProcessGroup& DistributedDataParallelBase::process_group() const {
  return state_->group;
}

c10::Device DistributedDataParallelBase::device() const {
  return state_->device;
}

void DistributedDataParallelBase::raise_wrong_type(
    const torch::nn::Module& module) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = format("the wrapped module is a {}", module.name()),
       .hint = "name its class in module<T>()",
       .detail = "E_CANNOT_WRAP"});
}

void DistributedDataParallelBase::before_forward() {
  State& state = *state_;
  if (at::GradMode::is_enabled()) {
    if (state.averages) {
      state.logger->set_runtime_stats_and_log();
      state.reducer->prepare_for_forward();
    }
    state.collective("rebuild_buckets", [&] {
      state.reducer->rebuild_buckets();
    });
  }
  if (state.buffers_are_due && state.syncs_buffers) {
    state.sync_buffers();
  }
}

TensorList DistributedDataParallelBase::after_forward(
    const TensorList& outputs) {
  State& state = *state_;
  const bool averages = at::GradMode::is_enabled() && state.averages;
  state.buffers_are_due = averages;
  if (averages) {
    state.reducer->prepare_for_backward(
        state.finds_unused() ? outputs : TensorList());
  }
  const bool is_first_of_static =
      state.first_backward != nullptr && !state.first_backward->has_come;
  return state.finds_unused() || is_first_of_static
             ? dist::internal::sink_outputs(outputs, state.first_backward)
             : outputs;
}

DistributedDataParallelBase::NoSync::NoSync(DistributedDataParallelBase& model)
    : model_(model), before_(std::exchange(model.state_->averages, false)) {}

DistributedDataParallelBase::NoSync::~NoSync() {
  model_.state_->averages = before_;
}

} // namespace lockstep
