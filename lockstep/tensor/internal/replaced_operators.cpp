// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/replaced_operators.h"

#include <array>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using c10::DispatchKey;

// Inference mode leaves out autograd's keys: who replaces an operation that
// LibTorch itself composes of others needs the device's key beside autograd's.
// Where LibTorch has a kernel of the device the device's key is enough.
constexpr std::array kCpu{DispatchKey::CPU};

constexpr std::array<std::string_view, 28> kRandomSignatures{
    "aten::bernoulli_.float(Tensor(a!) self, float p, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::bernoulli.out(Tensor self, *, Generator? generator, "
    "Tensor(a!) out) -> Tensor(a!)",
    "aten::uniform_(Tensor(a!) self, float from, float to, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::normal_(Tensor(a!) self, float mean, float std, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::normal.Tensor_float(Tensor mean, float std, *, "
    "Generator? generator) -> Tensor",
    "aten::normal.Tensor_float_out(Tensor mean, float std, *, "
    "Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    "aten::normal.float_Tensor(float mean, Tensor std, *, "
    "Generator? generator) -> Tensor",
    "aten::normal.float_Tensor_out(float mean, Tensor std, *, "
    "Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, "
    "Generator? generator) -> Tensor",
    "aten::normal.Tensor_Tensor_out(Tensor mean, Tensor std, *, "
    "Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    "aten::cauchy_(Tensor(a!) self, float median, float sigma, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::log_normal_(Tensor(a!) self, float mean, float std, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::exponential_(Tensor(a!) self, float lambd, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::geometric_(Tensor(a!) self, float p, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::random_(Tensor(a!) self, *, Generator? generator) -> Tensor(a!)",
    "aten::random_.to(Tensor(a!) self, int to, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::random_.from(Tensor(a!) self, int from, int? to, *, "
    "Generator? generator) -> Tensor(a!)",
    "aten::randperm.generator_out(SymInt n, *, Generator? generator, "
    "Tensor(a!) out) -> Tensor(a!)",
    "aten::multinomial(Tensor self, SymInt num_samples, bool replacement, *, "
    "Generator? generator) -> Tensor",
    "aten::multinomial.out(Tensor self, SymInt num_samples, bool replacement, "
    "*, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    "aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower, "
    "Scalar upper, bool training, Generator? generator) -> Tensor",
    "aten::rrelu_with_noise.out(Tensor self, Tensor(b!) noise, Scalar lower, "
    "Scalar upper, bool training, Generator? generator, *, Tensor(a!) out) -> "
    "Tensor(a!)",
    "aten::rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower, "
    "Scalar upper, bool training, Generator? generator) -> Tensor(a!)",
    "aten::poisson(Tensor self, Generator? generator) -> Tensor",
    "aten::_standard_gamma(Tensor self, Generator? generator) -> Tensor",
    "aten::_sample_dirichlet(Tensor self, Generator? generator) -> Tensor",
    "aten::binomial(Tensor count, Tensor prob, Generator? generator) -> "
    "Tensor"};

constexpr std::array<std::string_view, 2> kConvolutionSignatures{
    "aten::convolution(Tensor input, Tensor weight, Tensor? bias, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups) -> Tensor",
    "aten::convolution_backward(Tensor grad_output, Tensor input, "
    "Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"};

constexpr std::array<std::string_view, 1> kBatchNormSignatures{
    "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, "
    "Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> "
    "(Tensor, Tensor, Tensor, Tensor, int)"};
constexpr std::array kBatchNormKeys{
    DispatchKey::CPU,
    DispatchKey::AutogradCPU,
    DispatchKey::CUDA,
    DispatchKey::AutogradCUDA};

constexpr std::array<std::string_view, 1> kSyncBatchNormSignatures{
    "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, "
    "Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor"};
constexpr std::array kSyncBatchNormKeys{
    DispatchKey::CPU,
    DispatchKey::AutogradCPU,
    DispatchKey::CUDA,
    DispatchKey::AutogradCUDA,
    DispatchKey::PrivateUse1,
    DispatchKey::AutogradPrivateUse1};

// Before all of autograd and autocast. LibTorch itself registers nothing here:
// the key is for extensions that look at every operation, as its own tests do.
constexpr std::array kStandInKeys{DispatchKey::TESTING_ONLY_GenericMode};

// LibTorch promises it to nobody but its own compiler.
constexpr std::array<std::string_view, 1> kInnerProductSignatures{
    "mkldnn::_linear_pointwise(Tensor X, Tensor W, Tensor? B, str attr, "
    "Scalar?[] scalars, str? algorithm) -> Tensor Y"};

// Default values are the caller's affair: kernels get every argument.
std::string signature_of(const c10::FunctionSchema& schema) {
  std::vector<c10::Argument> arguments;
  for (const c10::Argument& argument : schema.arguments()) {
    arguments.emplace_back(
        argument.name(),
        argument.type(),
        argument.real_type(),
        argument.N(),
        std::nullopt,
        argument.kwarg_only(),
        argument.alias_info() == nullptr
            ? std::nullopt
            : std::optional(*argument.alias_info()));
  }
  return toString(schema.cloneWithArguments(std::move(arguments)));
}

// Empty if it is the same.
std::string difference_of(std::string_view signature) {
  const auto expected = torch::jit::parseSchema(std::string(signature));
  const auto found =
      c10::Dispatcher::singleton().findSchema(expected.operator_name());
  const std::string got = found ? signature_of(found->schema()) : "";
  if (got == signature) {
    return {};
  }
  return format(
      "{}: expected '{}', got {}",
      toString(expected.operator_name()),
      signature,
      found ? format("'{}'", got) : "no such operator");
}

// LibTorch prints one warning in a process when kernels take the place of its
// own; ours do so on purpose.
class Silence final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

} // namespace

constexpr OperatorSet kRandomOperators{
    .purpose = "random streams of replicas",
    .signatures = kRandomSignatures,
    .keys = kCpu};
constexpr OperatorSet kConvolutionOperators{
    .purpose = "convolutions of lockstep::kernels",
    .signatures = kConvolutionSignatures,
    .keys = kCpu};
constexpr OperatorSet kBatchNormOperators{
    .purpose = "batch norms of lockstep::kernels",
    .signatures = kBatchNormSignatures,
    .keys = kBatchNormKeys};
constexpr OperatorSet kSyncBatchNormOperators{
    .purpose = "convert_sync_batchnorm",
    .signatures = kSyncBatchNormSignatures,
    .keys = kSyncBatchNormKeys};
constexpr OperatorSet kStandInOperators{
    .purpose = "tensors of copied modules",
    .keys = kStandInKeys,
    .library = "_"};
constexpr OperatorSet kInnerProductOperators{
    .purpose = "matrix products of lockstep::kernels",
    .signatures = kInnerProductSignatures};

std::span<const OperatorSet* const> operator_sets() {
  static constexpr std::array<const OperatorSet*, 6> kAll{
      &kRandomOperators,
      &kConvolutionOperators,
      &kBatchNormOperators,
      &kSyncBatchNormOperators,
      &kStandInOperators,
      &kInnerProductOperators};
  return kAll;
}

std::string signature_differences(const OperatorSet& set) {
  std::vector<std::string> differences;
  for (const std::string_view signature : set.signatures) {
    if (std::string difference = difference_of(signature);
        !difference.empty()) {
      differences.push_back(std::move(difference));
    }
  }
  return join(differences, "; ");
}

ReplacedOperators::ReplacedOperators(
    const OperatorSet& set,
    void (*add)(torch::Library&)) {
  if (const std::string found = signature_differences(set); !found.empty()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "tensor.replaced_operators",
         .message = format(
             "this LibTorch has other operators than {} needs: {}",
             set.purpose,
             found),
         .hint = "use a version of LibTorch that Lockstep supports",
         .detail = "E_OPERATORS"});
  }
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  libraries_.reserve(set.keys.size());
  for (const c10::DispatchKey key : set.keys) {
    add(libraries_.emplace_back(
        torch::Library::IMPL,
        set.library,
        key,
        __FILE__,
        __LINE__));
  }
}

void OperatorSwitch::turn_on() {
  const std::scoped_lock lock(mutex_);
  if (replaced_ == nullptr) {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): outlives the process
    replaced_ = new ReplacedOperators(set_, add_);
  }
}

void OperatorSwitch::turn_off() {
  const std::scoped_lock lock(mutex_);
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): as above
  delete std::exchange(replaced_, nullptr);
}

} // namespace lockstep
