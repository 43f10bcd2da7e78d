// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/kept_parts.h"

#include <utility>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/nn/module.h>

#include "lockstep/tensor/internal/given_tensors.h"
#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/internal/same_values.h"

namespace lockstep {
namespace {

// Undefined for what nothing can be written to in place.
at::Tensor values_of(const at::Tensor& tensor) {
  const bool is_known = tensor.has_storage() && !tensor.is_meta() &&
                        at::has_internal_overlap(tensor) != at::MemOverlap::Yes;
  return is_known ? tensor.detach().clone() : at::Tensor();
}

} // namespace

KeptModes::KeptModes(const torch::nn::Module& module) {
  keep(module);
}

void KeptModes::keep(const torch::nn::Module& module) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): put back
  auto* const mine = const_cast<torch::nn::Module*>(&module);
  if (kept_.try_emplace(mine, module.is_training()).second) {
    for (const auto& [name, child] : children_of(module)) {
      keep(*child);
    }
  }
}

void KeptModes::restore() const {
  for (const auto& [module, is_training] : kept_) {
    Registered::set_training(*module, is_training);
  }
}

EvaluationMode::EvaluationMode(torch::nn::Module& module)
    : module_(module), was_training_(module.is_training()) {
  for (auto& part : module.modules(/*include_self=*/false)) {
    const bool is_training = part->is_training();
    parts_.emplace_back(std::move(part), is_training);
  }
  module.eval();
}

EvaluationMode::~EvaluationMode() {
  module_.train(was_training_);
  // A module comes before those in it, which its train() switches, too.
  for (const auto& [part, was_training] : parts_) {
    if (part->is_training() != was_training) {
      part->train(was_training);
    }
  }
}

KeptParts::KeptParts(const torch::nn::Module& module) : modes_(module) {
  each_tensor(
      module,
      "",
      [this](const std::string& name, const at::Tensor& tensor) {
        const bool is_new =
            place_of_.try_emplace(tensor.unsafeGetTensorImpl(), kept_.size())
                .second;
        if (is_new) {
          kept_.push_back(
              {.name = name,
               .tensor = tensor,
               .data = tensor.variable_data(),
               .values = values_of(tensor),
               .version = tensor.is_inference()
                              ? std::nullopt
                              : std::optional(tensor._version()),
               .requires_grad = tensor.requires_grad()});
        }
      });
  for (Kept& kept : kept_) {
    kept.holders = kept.tensor.use_count();
  }
}

void KeptParts::restore() const {
  for (const Kept& kept : kept_) {
    if (kept.tensor.has_storage() && !kept.tensor.is_alias_of(kept.data)) {
      kept.tensor.set_data(kept.data);
    }
    restore_values(kept);
    if (kept.tensor.requires_grad() != kept.requires_grad) {
      kept.tensor.set_requires_grad(kept.requires_grad);
    }
  }
  modes_.restore();
}

// Nobody is to see that they were others.
void KeptParts::restore_values(const Kept& kept) {
  if (kept.values.defined() && !same_values(kept.data, kept.values)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    kept.data.copy_(kept.values);
  }
  if (kept.version && kept.tensor._version() != *kept.version) {
    // A copy of the counter counts the same.
    c10::VariableVersion version =
        kept.tensor.unsafeGetTensorImpl()->version_counter();
    version.set_version(*kept.version);
  }
}

void KeptParts::each_held(
    const std::function<void(const std::string&, const at::Tensor&)>& tell)
    const {
  for (const Kept& kept : kept_) {
    if (kept.tensor.use_count() > kept.holders) {
      tell(kept.name, kept.tensor);
    }
  }
}

} // namespace lockstep
