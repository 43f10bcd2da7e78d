// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's CPU kernels that draw random numbers, with the generator replaced
// by the replica's. These are the leaves that rand, randn, dropout, randperm,
// rrelu and module initialisation end in; each calls the stock kernel.
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_sample_dirichlet_cpu_dispatch.h>
#include <ATen/ops/_standard_gamma_cpu_dispatch.h>
#include <ATen/ops/bernoulli_cpu_dispatch.h>
#include <ATen/ops/binomial_cpu_dispatch.h>
#include <ATen/ops/cauchy_cpu_dispatch.h>
#include <ATen/ops/exponential_cpu_dispatch.h>
#include <ATen/ops/geometric_cpu_dispatch.h>
#include <ATen/ops/log_normal_cpu_dispatch.h>
#include <ATen/ops/multinomial_cpu_dispatch.h>
#include <ATen/ops/normal_cpu_dispatch.h>
#include <ATen/ops/poisson_cpu_dispatch.h>
#include <ATen/ops/random_cpu_dispatch.h>
#include <ATen/ops/randperm_cpu_dispatch.h>
#include <ATen/ops/rrelu_with_noise_cpu_dispatch.h>
#include <ATen/ops/uniform_cpu_dispatch.h>

#include "lockstep/parallel/internal/random_stream.h"
#include "lockstep/tensor/internal/replaced_operators.h"

namespace lockstep::parallel {
namespace {

using at::Scalar;
using at::Tensor;
using Generator = std::optional<at::Generator>;

// In place, with N numbers as parameters: uniform_(self, from, to, generator).
template <auto kKernel>
Tensor& with_two(Tensor& self, double a, double b, Generator g) {
  return kKernel(self, a, b, pick_generator(std::move(g)));
}

template <auto kKernel>
Tensor& with_one(Tensor& self, double a, Generator g) {
  return kKernel(self, a, pick_generator(std::move(g)));
}

// Out of place, one tensor in.
template <auto kKernel>
Tensor of_tensor(const Tensor& self, Generator g) {
  return kKernel(self, pick_generator(std::move(g)));
}

template <auto kKernel>
Tensor of_tensors(const Tensor& a, const Tensor& b, Generator g) {
  return kKernel(a, b, pick_generator(std::move(g)));
}

Tensor& bernoulli_tensor(Tensor& self, const Tensor& p, Generator g) {
  return at::cpu::bernoulli_(self, p, pick_generator(std::move(g)));
}

Tensor& bernoulli_out(const Tensor& self, Generator g, Tensor& out) {
  return at::cpu::bernoulli_outf(self, pick_generator(std::move(g)), out);
}

Tensor& random_any(Tensor& self, Generator g) {
  return at::cpu::random_(self, pick_generator(std::move(g)));
}

Tensor& random_to(Tensor& self, std::int64_t to, Generator g) {
  return at::cpu::random_(self, to, pick_generator(std::move(g)));
}

Tensor& random_from(
    Tensor& self,
    std::int64_t from,
    std::optional<std::int64_t> to,
    Generator g) {
  return at::cpu::random_(self, from, to, pick_generator(std::move(g)));
}

Tensor& randperm_out(std::int64_t n, Generator g, Tensor& out) {
  return at::cpu::randperm_outf(n, pick_generator(std::move(g)), out);
}

Tensor multinomial(
    const Tensor& self,
    std::int64_t samples,
    bool replacement,
    Generator g) {
  return at::cpu::multinomial(
      self,
      samples,
      replacement,
      pick_generator(std::move(g)));
}

Tensor& multinomial_out(
    const Tensor& self,
    std::int64_t samples,
    bool replacement,
    Generator g,
    Tensor& out) {
  return at::cpu::multinomial_outf(
      self,
      samples,
      replacement,
      pick_generator(std::move(g)),
      out);
}

// One of both is a tensor, or both are.
template <class Mean, class Std>
Tensor normal(Mean mean, Std std, Generator g) {
  return at::cpu::normal(mean, std, pick_generator(std::move(g)));
}

template <class Mean, class Std>
Tensor& normal_out(Mean mean, Std std, Generator g, Tensor& out) {
  return at::cpu::normal_outf(mean, std, pick_generator(std::move(g)), out);
}

Tensor rrelu(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    Generator g) {
  return at::cpu::rrelu_with_noise(
      self,
      noise,
      lower,
      upper,
      training,
      pick_generator(std::move(g)));
}

Tensor& rrelu_in_place(
    Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    Generator g) {
  return at::cpu::rrelu_with_noise_(
      self,
      noise,
      lower,
      upper,
      training,
      pick_generator(std::move(g)));
}

// NOLINTNEXTLINE(readability-function-size): LibTorch's schema
Tensor& rrelu_out(
    const Tensor& self,
    Tensor& noise,
    const Scalar& lower,
    const Scalar& upper,
    bool training,
    Generator g,
    Tensor& out) {
  return at::cpu::rrelu_with_noise_outf(
      self,
      noise,
      lower,
      upper,
      training,
      pick_generator(std::move(g)),
      out);
}

using OneFn = Tensor& (*)(Tensor&, double, Generator);

void add_random_kernels(torch::Library& lib) {
  lib.impl("bernoulli_.float", &with_one<OneFn{&at::cpu::bernoulli_}>);
  lib.impl("bernoulli_.Tensor", &bernoulli_tensor);
  lib.impl("bernoulli.out", &bernoulli_out);
  lib.impl("uniform_", &with_two<&at::cpu::uniform_>);
  lib.impl("normal_", &with_two<&at::cpu::normal_>);
  lib.impl("normal.Tensor_float", &normal<const Tensor&, double>);
  lib.impl("normal.Tensor_float_out", &normal_out<const Tensor&, double>);
  lib.impl("normal.float_Tensor", &normal<double, const Tensor&>);
  lib.impl("normal.float_Tensor_out", &normal_out<double, const Tensor&>);
  lib.impl("normal.Tensor_Tensor", &normal<const Tensor&, const Tensor&>);
  lib.impl(
      "normal.Tensor_Tensor_out",
      &normal_out<const Tensor&, const Tensor&>);
  lib.impl("cauchy_", &with_two<&at::cpu::cauchy_>);
  lib.impl("log_normal_", &with_two<&at::cpu::log_normal_>);
  lib.impl("exponential_", &with_one<&at::cpu::exponential_>);
  lib.impl("geometric_", &with_one<&at::cpu::geometric_>);
  lib.impl("random_", &random_any);
  lib.impl("random_.to", &random_to);
  lib.impl("random_.from", &random_from);
  lib.impl("randperm.generator_out", &randperm_out);
  lib.impl("multinomial", &multinomial);
  lib.impl("multinomial.out", &multinomial_out);
  lib.impl("rrelu_with_noise", &rrelu);
  lib.impl("rrelu_with_noise.out", &rrelu_out);
  lib.impl("rrelu_with_noise_", &rrelu_in_place);
  lib.impl("poisson", &of_tensor<&at::cpu::poisson>);
  lib.impl("_standard_gamma", &of_tensor<&at::cpu::_standard_gamma>);
  lib.impl("_sample_dirichlet", &of_tensor<&at::cpu::_sample_dirichlet>);
  lib.impl("binomial", &of_tensors<&at::cpu::binomial>);
}

OperatorSwitch random_operators{kRandomOperators, &add_random_kernels};

} // namespace

void install_random_streams() {
  random_operators.turn_on();
}

void uninstall_random_streams() {
  random_operators.turn_off();
}

} // namespace lockstep::parallel
