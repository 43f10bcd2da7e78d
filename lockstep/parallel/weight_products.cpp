// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/weight_products.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

namespace lockstep::parallel {
namespace {

using at::Tensor;

// Below this LibTorch's way costs next to nothing.
constexpr std::int64_t kMinChannels = 64;

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// What the first gradient of each shape showed.
class Proofs {
 public:
  using Shape = std::vector<std::int64_t>;

  std::optional<bool> find(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    const auto row = rows_.find(shape);
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  }

  void add(const Shape& shape, bool is_equal) {
    const std::lock_guard lock(mutex_);
    rows_[shape] = is_equal;
  }

 private:
  std::mutex mutex_;
  std::map<Shape, bool> rows_;
};

Proofs& proofs() {
  static Proofs all;
  return all;
}

Proofs::Shape
shape_of(const Tensor& input, const Tensor& weight, const KernelSteps& steps) {
  Proofs::Shape shape{at::get_num_threads()};
  for (const at::IntArrayRef part :
       {input.sizes(),
        weight.sizes(),
        steps.stride,
        steps.padding,
        steps.dilation}) {
    shape.insert(shape.end(), part.begin(), part.end());
  }
  return shape;
}

} // namespace

bool weight_products_fit(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight) {
  return grad_output.size(2) == 1 && grad_output.size(3) == 1 &&
         input.size(0) > 0 && weight.size(0) >= kMinChannels &&
         weight.size(1) >= kMinChannels && weight.size(2) * weight.size(3) > 1;
}

Tensor weight_products(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  Tensor gradient = at::zeros(weight.sizes(), weight.options());
  const Tensor grads = grad_output.flatten(1).t();
  for (std::int64_t kh = 0; kh < weight.size(2); ++kh) {
    const std::int64_t h = kh * steps.dilation[0] - steps.padding[0];
    for (std::int64_t kw = 0; kw < weight.size(3); ++kw) {
      const std::int64_t w = kw * steps.dilation[1] - steps.padding[1];
      if (h >= 0 && h < input.size(2) && w >= 0 && w < input.size(3)) {
        const Tensor pixels = input.select(3, w).select(2, h);
        gradient.select(3, kw).select(2, kh).copy_(grads.mm(pixels));
      }
    }
  }
  return gradient;
}

std::optional<Tensor> exact_weight_products(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps,
    const std::function<Tensor()>& libtorchs_way) {
  const Proofs::Shape shape = shape_of(input, weight, steps);
  const std::optional<bool> is_equal = proofs().find(shape);
  if (is_equal == false) {
    return std::nullopt;
  }
  Tensor products = weight_products(grad_output, input, weight, steps);
  if (!is_equal) {
    Tensor reference = libtorchs_way();
    proofs().add(shape, same_bits(products, reference));
    return reference;
  }
  return products;
}

} // namespace lockstep::parallel
