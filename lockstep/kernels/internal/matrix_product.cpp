// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/matrix_product.h"

#include <optional>

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/tensor/internal/replaced_operators.h"

namespace lockstep::kernels {
namespace internal {
namespace {

constexpr std::size_t kArguments = 6;

at::Float32Precision precision_of(at::Float32Op operation) {
  return at::globalContext().float32Precision(
      at::Float32Backend::MKLDNN,
      operation);
}

std::optional<c10::OperatorHandle> find_inner_product() {
  auto found = c10::Dispatcher::singleton().findSchema(
      {"mkldnn::_linear_pointwise", ""});
  if (!found || !found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
    return std::nullopt;
  }
  const std::string differences = signature_differences(kInnerProductOperators);
  if (!differences.empty()) {
    TORCH_WARN(format(
        "matrix products take LibTorch's other way, with other bits: {}",
        differences));
    return std::nullopt;
  }
  return found;
}

const std::optional<c10::OperatorHandle>& inner_product_operator() {
  static const auto found = find_inner_product();
  return found;
}

// Of operands with gaps between their rows oneDNN takes its slow reference.
at::Tensor without_gaps(const at::Tensor& matrix) {
  return matrix.t().is_contiguous() ? matrix : matrix.contiguous();
}

Multiplier multiplier_of_this_processor() {
  return multiplier_for(
      cpu_model().vendor == "AuthenticAMD",
      cpu_model().family,
      widest_vectors() == VectorWidth::kAvx512);
}

} // namespace

Multiplier multiplier_for(bool is_amd, unsigned family, bool has_avx512) {
  constexpr unsigned kFirstWithWideAvx512 = 0x1A;
  if (!is_amd || !has_avx512) {
    return Multiplier::kMm;
  }
  return family >= kFirstWithWideAvx512 ? Multiplier::kInnerProduct
                                        : Multiplier::kInnerProductForRows;
}

bool has_inner_product() {
  return inner_product_operator().has_value();
}

at::Tensor inner_product(
    const at::Tensor& a,
    const at::Tensor& b,
    const at::Tensor& bias) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack;
  stack.reserve(kArguments);
  stack.emplace_back(without_gaps(a));
  stack.emplace_back(without_gaps(b).t());
  stack.emplace_back(
      bias.defined() ? c10::IValue(bias.contiguous()) : c10::IValue());
  stack.emplace_back("none");
  stack.emplace_back(c10::List<std::optional<at::Scalar>>());
  stack.emplace_back("");
  const auto& product = inner_product_operator();
  if (!product) {
    TORCH_CHECK(false, "has_inner_product() says that there is none");
  }
  product->callBoxed(stack);
  return std::move(stack.front()).toTensor();
}

} // namespace internal

std::array<std::int64_t, 2> float32_precisions() {
  return {
      static_cast<std::int64_t>(internal::precision_of(at::Float32Op::MATMUL)),
      static_cast<std::int64_t>(internal::precision_of(at::Float32Op::CONV))};
}

bool products_are_as_precise() {
  const auto product = internal::precision_of(at::Float32Op::MATMUL);
  const bool rounds = product == at::Float32Precision::TF32 ||
                      product == at::Float32Precision::BF16;
  return !rounds || product == internal::precision_of(at::Float32Op::CONV);
}

at::Tensor matrix_product(
    const at::Tensor& a,
    const at::Tensor& b,
    Sums sums,
    const at::Tensor& bias) {
  using internal::Multiplier;
  static const Multiplier multiplier =
      internal::has_inner_product() ? internal::multiplier_of_this_processor()
                                    : Multiplier::kMm;
  const bool is_inner_product =
      multiplier == Multiplier::kInnerProduct ||
      (multiplier == Multiplier::kInnerProductForRows && a.stride(1) == 1);
  if (is_inner_product && sums == Sums::kInOneChain &&
      a.scalar_type() == at::kFloat &&
      at::globalContext().userEnabledMkldnn()) {
    return internal::inner_product(a, b, bias);
  }
  return bias.defined() ? at::cpu::addmm(bias, a, b) : at::cpu::mm(a, b);
}

} // namespace lockstep::kernels
