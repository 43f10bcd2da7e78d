// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/tune.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>

#include "cli_train/bench_job.h"
#include "lockstep/tensor/internal/operations.h"

namespace lockstep::cli_train {
namespace {

constexpr std::string_view kConvolution = "aten::convolution";

// Where an operation's arguments are.
constexpr std::size_t kInput = 0;
constexpr std::size_t kWeight = 1;
constexpr std::size_t kStride = 3;
constexpr std::size_t kPadding = 4;
constexpr std::size_t kDilation = 5;
constexpr std::size_t kTransposed = 6;
constexpr std::size_t kGroups = 8;

struct FoundConvolution {
  TunedConvolution convolution = {};
  at::Tensor input = {};
  at::Tensor weight = {};
};

class Collector final : public OperationListener {
 public:
  void on_start(const at::RecordFunction& op, int /*depth*/) override {
    // Inside of one it is the same, below autograd.
    if (op.name() == kConvolution && depth_++ == 0) {
      add(op.inputs());
    }
  }

  void on_end(const at::RecordFunction& op, int /*depth*/) override {
    depth_ -= op.name() == kConvolution ? 1 : 0;
  }

  std::vector<FoundConvolution> found = {};
  std::int64_t others = 0;

 private:
  void add(c10::ArrayRef<const c10::IValue> arguments) {
    const at::Tensor& input = arguments[kInput].toTensor();
    const at::Tensor& weight = arguments[kWeight].toTensor();
    if (input.dim() != 4 || arguments[kTransposed].toBool() ||
        arguments[kGroups].toInt() != 1 ||
        (input.scalar_type() != at::kFloat &&
         input.scalar_type() != at::kBFloat16)) {
      ++others;
      return;
    }
    FoundConvolution one{
        .convolution =
            {.input_sizes = input.sizes().vec(),
             .weight_sizes = weight.sizes().vec(),
             .stride = arguments[kStride].toIntVector(),
             .padding = arguments[kPadding].toIntVector(),
             .dilation = arguments[kDilation].toIntVector()},
        .input = input,
        .weight = weight};
    const auto same = std::ranges::find_if(found, [&](const auto& other) {
      return is_same(one, other);
    });
    if (same == found.end()) {
      found.push_back(std::move(one));
    } else {
      ++same->convolution.count;
    }
  }

  static bool is_same(const FoundConvolution& a, const FoundConvolution& b) {
    const auto shape_of = [](const TunedConvolution& one) {
      return std::tie(
          one.input_sizes,
          one.weight_sizes,
          one.stride,
          one.padding,
          one.dilation);
    };
    return shape_of(a.convolution) == shape_of(b.convolution) &&
           a.input.scalar_type() == b.input.scalar_type() &&
           a.input.strides() == b.input.strides() &&
           a.input.requires_grad() == b.input.requires_grad();
  }

  std::int64_t depth_ = 0; // of convolutions
};

} // namespace

TuneResult run_tune(
    const BenchRequest& request,
    const BenchProgress& progress) {
  at::set_num_threads(request.threads);
  BenchJob job(request, request.kernels.front());
  TuneResult result{.has_channels_last = job.has_channels_last()};
  Collector collector;
  observe_operations(collector, [&] { job.make_gradients(); });
  result.others = collector.others;
  const std::int64_t all = std::ssize(collector.found);
  for (auto& [convolution, input, weight] : collector.found) {
    progress(std::ssize(result.convolutions), all);
    convolution.times = kernels::time_convolution(
        input.detach(),
        weight.detach(),
        {.stride = convolution.stride,
         .padding = convolution.padding,
         .dilation = convolution.dilation},
        request.steps);
    if (!input.requires_grad()) {
      convolution
          .times[static_cast<std::size_t>(kernels::Pass::kInputGradient)] = {};
    }
    result.convolutions.push_back(std::move(convolution));
  }
  progress(all, all);
  return result;
}

} // namespace lockstep::cli_train
