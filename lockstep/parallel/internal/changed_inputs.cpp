// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/changed_inputs.h"

#include <algorithm>
#include <utility>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::parallel {
namespace {

[[noreturn]] void
cannot_change(std::size_t place, const char* why, const char* hint) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "parallel.forward",
       .message = format("forward changes input {} in place, {}", place, why),
       .hint = hint});
}

constexpr const char* kCloneHint =
    "pass input.clone(), or make the operation not in place";

void check_may_change(
    const TensorList& inputs,
    std::size_t place,
    bool has_graph) {
  const at::Tensor& input = inputs[place];
  if (has_graph && input.is_view()) {
    cannot_change(
        place,
        "which takes a gradient and is a view of another tensor",
        kCloneHint);
  }
  if (has_graph && input.retains_grad()) {
    cannot_change(
        place,
        "which retains its gradient: a part of that stays in the replicas",
        kCloneHint);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i != place && inputs[i].defined() && inputs[i].is_alias_of(input)) {
      cannot_change(place, "whose memory another input shares", kCloneHint);
    }
  }
  if (at::has_internal_overlap(input) == at::MemOverlap::Yes) {
    cannot_change(place, "whose elements share memory", kCloneHint);
  }
}

bool is_changed(const ReplicaPass& pass, std::size_t place) {
  return std::ranges::find(pass.changed, place) != pass.changed.end();
}

} // namespace

void find_changes(
    ReplicaPass& pass,
    const TensorList& shards,
    const TensorList& inputs,
    c10::Device home) {
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    const at::Tensor& input = pass.inputs[i];
    if (!input.defined() || input.is_inference() || input._version() == 0) {
      continue;
    }
    if (input.sizes() != shards[i].sizes() ||
        input.strides() != shards[i].strides()) {
      cannot_change(
          i,
          "to another shape",
          "use unsqueeze, t, squeeze instead of unsqueeze_, t_, squeeze_");
    }
    const bool has_new_graph =
        input.requires_grad() &&
        torch::autograd::impl::gradient_edge(input) != pass.input_edges[i];
    if (inputs[i].device() != home) {
      continue; // one device would have worked on a copy
    }
    TORCH_CHECK(
        !(has_new_graph && inputs[i].requires_grad() && inputs[i].is_leaf()),
        "a leaf Variable that requires grad is being used in an in-place "
        "operation.");
    pass.changed.push_back(i);
    if (has_new_graph) {
      pass.outputs.push_back(input);
      pass.rewritten.push_back(i);
    }
  }
}

std::string changes_text(const ReplicaPass& pass) {
  std::vector<std::string> places;
  places.reserve(pass.rewritten.size());
  for (const std::size_t place : pass.rewritten) {
    places.push_back(std::to_string(place));
  }
  return places.empty()
             ? ""
             : format(", inputs {} changed in place", join(places, ", "));
}

void write_back(
    std::span<const ReplicaPass> passes,
    const TensorList& inputs,
    std::int64_t dim) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    const bool any = std::ranges::any_of(passes, [i](const auto& pass) {
      return is_changed(pass, i);
    });
    if (!any) {
      continue;
    }
    if (!input.is_inference()) {
      input.unsafeGetTensorImpl()->bump_version();
    }
    check_may_change(inputs, i, !passes.front().rewritten.empty());
    std::int64_t start = 0;
    for (const ReplicaPass& pass : passes) {
      const at::Tensor& shard = pass.inputs[i];
      const std::int64_t rows = shard.size(dim);
      if (is_changed(pass, i) && !shard.is_alias_of(input)) {
        input.data().narrow(dim, start, rows).copy_(shard);
      }
      start += rows;
    }
  }
}

InputWatch::InputWatch(
    std::span<const ReplicaPass> passes,
    const TensorList& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || inputs[i].is_inference()) {
      continue;
    }
    Row row{.input = torch::autograd::impl::version_counter(inputs[i])};
    row.seen = row.input.current_version();
    for (const ReplicaPass& pass : passes) {
      const at::Tensor& shard = pass.inputs[i];
      if (shard.is_alias_of(inputs[i]) && !shard.is_inference()) {
        row.shards.push_back(torch::autograd::impl::version_counter(shard));
      }
    }
    rows_.push_back(std::move(row));
  }
}

void InputWatch::pass_changes_on() {
  for (Row& row : rows_) {
    const std::uint32_t now = row.input.current_version();
    if (std::exchange(row.seen, now) != now) {
      for (c10::VariableVersion& shard : row.shards) {
        shard.bump();
      }
    }
  }
}

} // namespace lockstep::parallel
