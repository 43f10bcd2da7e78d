// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/replica_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/parallel/internal/connected_graph.h"
#include "lockstep/parallel/internal/gradient_gates.h"
#include "lockstep/parallel/internal/module_copy.h"
#include "lockstep/parallel/internal/renormed_rows.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/internal/kept_parts.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/rng.h"

namespace lockstep::parallel {
namespace {

using Module = torch::nn::Module;

bool is_alias(const at::Tensor& leaf, const at::Tensor& master) {
  return leaf.is_alias_of(master) &&
         leaf.storage_offset() == master.storage_offset() &&
         leaf.dtype() == master.dtype() && leaf.sizes() == master.sizes() &&
         leaf.strides() == master.strides();
}

void follow_flags(ParameterRow& row, std::size_t replica) {
  for (at::Tensor& leaf : row.leaves[replica]) {
    if (leaf.requires_grad() != row.master.requires_grad()) {
      leaf.set_requires_grad(row.master.requires_grad());
    }
  }
}

torch::autograd::Edge accumulator_of(const at::Tensor& master) {
  return {torch::autograd::impl::try_get_grad_accumulator(master), 0};
}

} // namespace

ReplicaSet::ReplicaSet(
    std::shared_ptr<Module> master,
    std::vector<c10::Device> devices,
    DataParallelOptions options,
    ModuleFactory default_factory,
    bool warns)
    : devices_(std::move(devices)),
      options_(std::move(options)),
      default_factory_(std::move(default_factory)),
      warns_(warns) {
  modules_.push_back(std::move(master));
  make_replicas();
}

ReplicaSet::~ReplicaSet() = default;
ReplicaSet::ReplicaSet(ReplicaSet&&) noexcept = default;
ReplicaSet& ReplicaSet::operator=(ReplicaSet&&) noexcept = default;

void ReplicaSet::rebuild() {
  *this = ReplicaSet(
      modules_.front(),
      devices_,
      options_,
      default_factory_,
      warns_);
}

void ReplicaSet::forget_sent() {
  for (std::vector<SourceMark>& marks : sent_) {
    marks.assign(marks.size(), SourceMark());
  }
}

void ReplicaSet::make_replicas() {
  const c10::InferenceMode no_inference(false);
  const torch::NoGradGuard no_grad;
  const RngStateGuard keep;
  const std::shared_ptr<Module> master = modules_.front();
  std::vector<ModuleParts> parts;
  parts.reserve(devices_.size());
  parts.emplace_back(master);
  stand_ins_.resize(devices_.size());
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    ModuleCopy copy =
        copy_module(*master, devices_[i], options_.factory, default_factory_);
    check_apart(*copy.module, modules_);
    if (warns_) {
      warn_of_shared(copy);
      warn_of_unlike(*master, copy);
      warns_ = false;
    }
    shares_children_ = shares_children_ || !copy.shared.empty();
    modules_.push_back(std::move(copy.module));
    stand_ins_[i] = std::move(copy.stand_ins);
    if (!devices_[i].is_cpu()) {
      modules_.back()->to(devices_[i]);
    }
    parts.emplace_back(modules_.back(), parts.data());
  }
  link(std::move(parts));
}

void ReplicaSet::link(std::vector<ModuleParts> parts) {
  rows_ = make_rows(parts);
  mark_renormed(*modules_.front(), rows_);
  has_renormed_ = std::ranges::any_of(rows_, [](const ParameterRow& row) {
    return row.norm.has_value();
  });
  sent_.assign(parts.size(), std::vector<SourceMark>(rows_.size()));
  buffers_.assign(parts.size(), {});
  buffer_marks_.assign(parts.size(), {});
  submodules_.assign(parts.size(), {});
  ends_.clear();
  marks_.assign(parts.size(), {});
  for (std::size_t r = 0; r < parts.size(); ++r) {
    ends_.emplace_back(rows_, r);
    for (const auto& [name, buffer] : parts[r].buffers) {
      buffers_[r].push_back(buffer);
    }
    if (r > 0) { // who else holds one of the master's tells of its members
      submodules_[r] = modules_[r]->modules();
    }
  }
  parts_ = std::move(parts);
  modes_ = parts_.front().changes().modes;
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    for (ParameterRow& row : rows_) {
      follow_flags(row, r);
    }
    follow_modes(r);
    if (options_.connected_graph) {
      connect(rows_, r, devices_.front());
    } else {
      refuse_gradients(rows_, r);
    }
  }
  if (options_.connected_graph) {
    for (ParameterRow& row : rows_) {
      row.sent_to = accumulator_of(row.master);
    }
  }
}

void ReplicaSet::follow_structure() {
  ModuleParts::Changes changes = parts_.front().changes();
  if (changes.has_lone_child) {
    warn_of_replaced_children(*modules_.front());
  }
  const bool is_other = changes.in_structure || graph_is_old();
  if (is_other || (changes.in_buffers && !try_link_again())) {
    rebuild();
  } else {
    modes_ = std::move(changes.modes);
  }
}

// Each replica's forward may have registered the buffer, as the module's has.
bool ReplicaSet::try_link_again() {
  std::vector<ModuleParts> parts;
  for (const auto& module : modules_) {
    parts.emplace_back(module, parts.empty() ? nullptr : parts.data());
    if (parts.back().buffers.size() != parts.front().buffers.size()) {
      return false;
    }
  }
  link(std::move(parts));
  return true;
}

void ReplicaSet::follow(std::size_t used, Traffic& traffic) {
  follow_structure();
  for (const auto& [name, buffer] : parts_.front().buffers) {
    check_device(name, buffer);
  }
  const c10::InferenceMode no_inference(false);
  const torch::NoGradGuard no_grad;
  follow_parameters(0);
  for (std::size_t r = 1; r < used; ++r) {
    try {
      traffic.add(Cargo::kParameters, r, follow_parameters(r));
      follow_modes(r);
      traffic.add(
          Cargo::kBuffers,
          r,
          copy_buffers(buffers_.front(), buffers_[r], buffer_marks_[r]));
    } catch (...) {
      std::vector<std::exception_ptr> errors(devices_.size());
      errors[r] = std::current_exception();
      rethrow_lowest(errors, devices_, "parallel.forward");
    }
  }
}

Moved ReplicaSet::follow_parameters(std::size_t replica) {
  std::vector<LeafMark>& marks = marks_[replica];
  std::size_t marked = 0;
  Sending changed;
  Sending as_before;
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    ParameterRow& row = rows_[place];
    if (replica == 0) {
      check_device(row.name, row.master);
    } else {
      bring(place, replica, changed, as_before);
      follow_flags(row, replica);
    }
    if (devices_.size() == 1) { // nobody compares
      continue;
    }
    for (const at::Tensor& leaf : row.leaves[replica]) {
      if (!row.norm && !leaf.is_inference()) {
        marks.resize(std::max(marks.size(), marked + 1));
        LeafMark& mark = marks[marked++];
        mark.leaf = &leaf;
        mark.mark.note(leaf);
        mark.row = place;
      }
    }
  }
  marks.resize(marked);
  // Where the master's version is the one that was sent, graphs of earlier
  // passes stay usable, as on one device.
  Moved moved = copy_unseen(changed.from, changed.to);
  moved += copy_unseen(as_before.from, as_before.to);
  for (const Sending* sending : {&changed, &as_before}) {
    for (const std::size_t row : sending->rows) {
      sent_[replica][row].note(rows_[row].master);
    }
  }
  for (const at::Tensor& leaf : changed.to) {
    leaf.unsafeGetTensorImpl()->bump_version();
  }
  if (!changed.to.empty()) {
    for (LeafMark& mark : marks) {
      mark.mark.note(*mark.leaf);
    }
  }
  return moved;
}

// On the master's device leaves share its memory. Elsewhere the first leaf
// of a row holds the copy, and the others share that.
void ReplicaSet::bring(
    std::size_t row,
    std::size_t replica,
    Sending& changed,
    Sending& as_before) {
  auto& leaves = rows_[row].leaves[replica];
  const at::Tensor& master = rows_[row].master;
  const bool is_own = rows_[row].norm.has_value();
  const bool is_shared = devices_[replica] == devices_.front() && !is_own;
  if (!is_shared) {
    const bool is_like = same_form(leaves.front(), master);
    const bool is_known = is_like && sent_[replica][row].is_of(master);
    if (!(is_known && options_.trust_versions && !is_own)) {
      if (!is_like) {
        leaves.front().set_data(
            at::empty_like(master.detach(), leaves.front().device()));
      }
      Sending& sending = is_known ? as_before : changed;
      sending.from.push_back(master.detach());
      sending.to.push_back(leaves.front());
      sending.rows.push_back(row);
    }
  }
  const at::Tensor& source = is_shared ? master : leaves.front();
  for (at::Tensor& leaf : leaves) {
    if (!leaf.is_same(source) && !is_alias(leaf, source)) {
      leaf.set_data(source.detach());
    }
  }
}

// A connected replica's graph holds the flags, devices and dtypes of its time.
bool ReplicaSet::graph_is_old() const {
  if (!options_.connected_graph || devices_.size() == 1) {
    return false;
  }
  return std::ranges::any_of(rows_, [](const ParameterRow& row) {
    // A move or another dtype, and back, gives the parameter another one.
    if (row.sent_to != accumulator_of(row.master)) {
      return true;
    }
    return std::ranges::any_of(row.leaves.back(), [&row](const auto& leaf) {
      return leaf.requires_grad() != row.master.requires_grad();
    });
  });
}

void ReplicaSet::follow_modes(std::size_t replica) {
  // Parents come first and train() is recursive, so a child set apart from its
  // parent is set again, rightly, when its own turn comes.
  const auto& mine = submodules_[replica];
  std::optional<KeptModes> masters;
  for (std::size_t m = 0; m < mine.size(); ++m) {
    const bool training = modes_[m];
    if (mine[m]->is_training() != training) {
      if (!masters) {
        masters.emplace(*modules_.front());
      }
      // The user's train() may switch a layer that it shares with the master.
      mine[m]->train(training);
      masters->restore();
    }
  }
}

void ReplicaSet::check_device(const std::string& name, const at::Tensor& tensor)
    const {
  const c10::Device expected = devices_.front();
  if (tensor.device() != expected) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "parallel.forward",
         .message = format(
             "module must have its parameters and buffers on device {} "
             "(device_ids[0]) but found one of them on device: {}",
             expected.str(),
             tensor.device().str()),
         .hint = format(
             "{} is there; call module->to(torch::Device(\"{}\"))",
             name,
             expected.str())});
  }
}

void ReplicaSet::take_renormed(std::size_t used) {
  if (has_renormed_) {
    lockstep::parallel::take_renormed(rows_, used);
  }
}

void ReplicaSet::check_unchanged(std::size_t replica) const {
  for (const LeafMark& mark : marks_[replica]) {
    if (!mark.mark.is_of(*mark.leaf)) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "parallel.forward",
           .message = format(
               "parameter '{}' was changed inside forward by replica {}",
               rows_[mark.row].name,
               replica),
           .hint = "replicas share parameters: change them outside of "
                   "forward, or register what changes as a buffer; for "
                   "max_norm use torch::nn::Embedding or EmbeddingBag"});
    }
  }
}

} // namespace lockstep::parallel
