// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/renormed_rows.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/where.h>
#include <torch/nn/modules/embedding.h>

namespace lockstep::parallel {
namespace {

template <class Layer>
void mark(const torch::nn::Module& module, std::span<ParameterRow> rows) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  if (layer == nullptr || !layer->options.max_norm()) {
    return;
  }
  for (ParameterRow& row : rows) {
    if (row.master.is_same(layer->weight)) {
      row.norm = layer->options.norm_type();
    }
  }
}

at::Tensor lengths(const at::Tensor& weight, double norm) {
  return at::norm(weight, norm, {1}, /*keepdim=*/true);
}

} // namespace

void mark_renormed(
    const torch::nn::Module& master,
    std::span<ParameterRow> rows) {
  mark<torch::nn::EmbeddingImpl>(master, rows);
  mark<torch::nn::EmbeddingBagImpl>(master, rows);
  for (const auto& child : master.children()) {
    mark_renormed(*child, rows);
  }
}

void take_renormed(std::span<const ParameterRow> rows, std::size_t used) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  for (const ParameterRow& row : rows) {
    const auto norm = row.norm;
    for (std::size_t r = 1; norm && r < used; ++r) {
      const at::Tensor& master = row.master;
      const at::Tensor mine = row.leaves[r].front().to(master.device());
      const at::Tensor is_shorter =
          at::lt(lengths(mine, *norm), lengths(master, *norm));
      master.copy_(at::where(is_shorter, mine, master));
    }
  }
}

} // namespace lockstep::parallel
