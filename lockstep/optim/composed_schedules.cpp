// SPDX-License-Identifier: BSD-3-Clause
#include <typeinfo>

#include <c10/util/Type.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/schedules.h"

namespace lockstep {

namespace {

/// Python's name of a class: without namespaces.
std::string class_of(const auto& object) {
  const std::string name = c10::demangle(typeid(object).name());
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

void check_inner(
    std::string_view kind,
    const OptimizerRef& optimizer,
    const Scheduler& inner,
    std::size_t index) {
  if (dynamic_cast<const ReduceLROnPlateau*>(&inner) != nullptr) {
    internal::refuse_schedule(format(
        "{} does not support `ReduceLROnPlateau` scheduler as it requires "
        "additional kwargs to be specified when calling `step`, but got one at "
        "index {} in the given schedulers sequence.",
        kind,
        index));
  }
  if (optimizer != inner.optimizer()) {
    internal::refuse_schedule(format(
        "{} expects all schedulers to belong to the same optimizer, but got "
        "scheduler {} at index {} has {}, which is different from {}.",
        kind,
        class_of(inner),
        index,
        class_of(*inner.optimizer()),
        class_of(*optimizer)));
  }
}

/// The first scheduler of a chain.
const Scheduler& first_of(
    const std::vector<std::shared_ptr<Scheduler>>& schedulers) {
  if (schedulers.empty() || schedulers.front() == nullptr) {
    internal::refuse_schedule(
        "ChainedScheduler expects at least one scheduler to be chained, but "
        "got no scheduler.");
  }
  return *schedulers.front();
}

} // namespace

ComposedScheduler::ComposedScheduler(
    std::string_view kind,
    OptimizerRef optimizer,
    Schedulers schedulers)
    : Scheduler(std::move(optimizer)),
      kind_(kind),
      schedulers_(std::move(schedulers)) {
  for (std::size_t i = 0; i < schedulers_.size(); ++i) {
    if (schedulers_[i] == nullptr) {
      internal::refuse_schedule(format(
          "{} at index {} should have `optimizer` as its attribute.",
          kind,
          i));
    }
    check_inner(kind, this->optimizer(), *schedulers_[i], i);
  }
}

void ComposedScheduler::initial_step() {
  has_initial_step_ = true;
  advance(Order::kGiven);
}

void ComposedScheduler::undo() {
  for (const std::shared_ptr<Scheduler>& scheduler : schedulers_) {
    scheduler->undo();
  }
}

// Python's NotImplementedError: `SequentialLR` refuses it when it is made, but
// the milestones of a loaded state may say so, too.
void ComposedScheduler::restart() {
  internal::refuse_schedule(format("{} cannot begin at a milestone", kind_));
}

ckpt::Value ComposedScheduler::state_dict() const {
  ckpt::Dict state = {.items = own_state()};
  state.items.emplace_back("_last_lr", get_last_lr());
  if (has_initial_step_) {
    state.items.emplace_back("_step_count", 0);
    state.items.emplace_back("_is_initial", false);
  }
  ckpt::List inner;
  for (const std::shared_ptr<Scheduler>& scheduler : schedulers_) {
    inner.items.push_back(scheduler->state_dict());
  }
  state.items.emplace_back("_schedulers", std::move(inner));
  return state;
}

void ComposedScheduler::load_state_dict(const ckpt::Value& state) {
  const std::string what = format("{} state", kind_);
  const internal::StateReader reader(state, what);
  const std::vector<ckpt::Value>& saved = reader.items("_schedulers");
  if (saved.size() != schedulers_.size()) {
    internal::mismatch(format(
        "'_schedulers' of {}: expected {} schedulers, got {}",
        what,
        schedulers_.size(),
        saved.size()));
  }
  std::vector<double> last_lr = reader.per_group("_last_lr", groups().size());
  std::vector<ckpt::Value> before;
  for (const std::shared_ptr<Scheduler>& scheduler : schedulers_) {
    before.push_back(scheduler->state_dict());
  }
  try {
    for (std::size_t i = 0; i < saved.size(); ++i) {
      schedulers_[i]->load_state_dict(saved[i]);
    }
    load_own_state(state);
  } catch (...) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      schedulers_[i]->load_state_dict(before[i]);
    }
    throw;
  }
  has_initial_step_ = reader.has("_step_count");
  set_position(
      reader.has("last_epoch") ? reader.integer("last_epoch")
                               : schedulers_.front()->last_epoch(),
      std::move(last_lr));
}

SequentialLR::SequentialLR(OptimizerRef optimizer, SequentialLROptions options)
    : ComposedScheduler(
          "SequentialLR",
          std::move(optimizer),
          std::move(options.schedulers)),
      milestones_(std::move(options.milestones)) {
  check_milestones();
  std::vector<double> first;
  for (const ParamGroup& group : groups()) {
    first.push_back(group.number("initial_lr"));
  }
  const std::int64_t epoch = options.last_epoch + 1;
  go_to(epoch, first);
  ComposedScheduler::undo();
  Scheduler& running = *schedulers()[index_at(0)];
  begin_again(running);
  set_position(epoch, running.get_last_lr());
}

void SequentialLR::check_milestones() const {
  if (schedulers().empty()) {
    internal::refuse_schedule(
        "SequentialLR expects at least one scheduler, but got no scheduler.");
  }
  if (milestones_.size() != schedulers().size() - 1) {
    internal::refuse_schedule(format(
        "Sequential Schedulers expects number of schedulers provided to be one "
        "more than the number of milestone points, but got number of "
        "schedulers {} and the number of milestones to be equal to {}",
        schedulers().size(),
        milestones_.size()));
  }
  for (std::size_t i = 0; i < milestones_.size(); ++i) {
    const Scheduler& next = *schedulers()[i + 1];
    if (milestones_[i] > 0 &&
        dynamic_cast<const ComposedScheduler*>(&next) != nullptr) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "optim.schedule",
           .message = format(
               "SequentialLR cannot begin the {} at index {} at a milestone",
               class_of(next),
               i + 1),
           .hint = "give its schedulers to the SequentialLR itself"});
    }
  }
}

/// Python's bisect_right, of milestones in any order.
std::size_t SequentialLR::index_at(std::int64_t epoch) const {
  std::size_t low = 0;
  std::size_t high = milestones_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (epoch < milestones_[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void SequentialLR::advance(Order order) {
  const std::int64_t epoch = last_epoch() + 1;
  set_position(epoch, get_last_lr());
  const std::size_t index = index_at(epoch);
  Scheduler& running = *schedulers()[index];
  if (index > 0 && milestones_[index - 1] == epoch) {
    begin_at_milestone(running);
  } else {
    go_on(running, order);
  }
  set_position(epoch, running.get_last_lr());
}

std::vector<ckpt::Item> SequentialLR::own_state() const {
  return {{"_milestones", milestones_}, {"last_epoch", last_epoch()}};
}

void SequentialLR::load_own_state(const ckpt::Value& state) {
  const internal::StateReader reader(state, "SequentialLR state");
  std::vector<std::int64_t> milestones;
  for (const ckpt::Value& item : reader.items("_milestones")) {
    if (item.as_int() == nullptr) {
      reader.refuse("_milestones", "integers", item);
    }
    milestones.push_back(*item.as_int());
  }
  if (milestones.size() != milestones_.size()) {
    internal::mismatch(format(
        "'_milestones' of SequentialLR state: expected {} values, got {}",
        milestones_.size(),
        milestones.size()));
  }
  static_cast<void>(reader.integer("last_epoch"));
  milestones_ = std::move(milestones);
}

ChainedScheduler::ChainedScheduler(
    const std::vector<std::shared_ptr<Scheduler>>& schedulers)
    : ChainedScheduler(schedulers, first_of(schedulers).optimizer()) {}

ChainedScheduler::ChainedScheduler(
    std::vector<std::shared_ptr<Scheduler>> schedulers,
    OptimizerRef optimizer)
    : ComposedScheduler(
          "ChainedScheduler",
          std::move(optimizer),
          std::move(schedulers)) {
  set_position(first_of(this->schedulers()).last_epoch(), scaled_lrs(1.0));
}

void ChainedScheduler::advance(Order order) {
  for (const std::shared_ptr<Scheduler>& scheduler : schedulers()) {
    go_on(*scheduler, order);
  }
  set_position(first_of(schedulers()).last_epoch(), scaled_lrs(1.0));
}

void ChainedScheduler::load_own_state(const ckpt::Value& state) {
  if (state.find("_milestones") != nullptr) {
    internal::mismatch(
        "ChainedScheduler state: '_milestones' is of another scheduler");
  }
}

} // namespace lockstep
