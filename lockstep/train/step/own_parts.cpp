// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/own_parts.h"

#include <algorithm>
#include <string>
#include <typeinfo>
#include <unordered_set>

#include <c10/util/Type.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"

namespace lockstep::train {
namespace {

// "own:Net" of "(anonymous namespace)::Net", "own:torch::nn::Sequential" of
// "torch::nn::SequentialImpl".
std::string own_name(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != std::string::npos;
       at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  constexpr std::string_view kImpl = "Impl";
  if (name.ends_with(kImpl) && name != kImpl) {
    name.resize(name.size() - kImpl.size());
  }
  return std::string(kOwnPrefix) + name;
}

// "own:SGD" of one whose options tell, else its class.
std::string own_optimizer(Optimizer& optimizer) {
  const std::string kind = saved_optimizer(optimizer.state_dict());
  return own_name(
      kind.empty() ? c10::demangle(typeid(optimizer).name()) : kind);
}

// True if all that the optimizer changes is the model's.
bool is_over(const torch::nn::Module& model, const Optimizer& optimizer) {
  std::unordered_set<const c10::TensorImpl*> own;
  for (const at::Tensor& parameter : model.parameters()) {
    own.insert(parameter.unsafeGetTensorImpl());
  }
  const auto is_own = [&](const at::Tensor& parameter) {
    return own.contains(parameter.unsafeGetTensorImpl());
  };
  return std::ranges::all_of(
      optimizer.param_groups(),
      [&](const ParamGroup& group) {
        return std::ranges::all_of(group.params, is_own);
      });
}

[[noreturn]] void refuse_own(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.parts",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_OWN_PARTS"});
}

// A name with one of these would be two columns of results.csv, or two rows.
void check_columns(const Task& task) {
  for (const MetricInfo& info : infos_of(task.metrics)) {
    if (info.name.find_first_of(",\"\r\n") != std::string::npos) {
      refuse_own(
          format(
              "a metric's name is a column of results.csv; expected one "
              "without commas, quotes and line feeds, got '{}'",
              escape(info.name)),
          "\"iou_car\", for example");
    }
  }
}

/// `name`: of the settings, which are those of a run of another program.
void refuse_missing(
    std::string_view field,
    const std::string& name,
    bool is_there) {
  if (name.starts_with(kOwnPrefix) && !is_there) {
    refuse_own(
        format(
            "the settings name the {} of a program, '{}', and there is none",
            field,
            escape(name)),
        format("go on in that program, which sets .own.{}", field));
  }
}

} // namespace

TrainConfig with_own_names(TrainConfig config, const OwnParts& own) {
  if (!own.model.is_empty()) {
    config.model = own.model_name.empty() ? own_name(own.model.module().name())
                                          : own.model_name;
  }
  if (own.has_data()) {
    const Dataset& data = *own.first_data();
    config.data = own.data_name.empty()
                      ? own_name(c10::demangle(typeid(data).name()))
                      : own.data_name;
  }
  if (!own.task.is_empty()) {
    const std::vector<std::string> known = task_names();
    const bool is_known =
        std::ranges::find(known, own.task.name) != known.end();
    config.task = is_known
                      ? own.task.name
                      : std::string(kOwnPrefix) +
                            (own.task.name.empty() ? "loss" : own.task.name);
  }
  if (own.optimizer) {
    config.opt = own_optimizer(**own.optimizer);
  }
  if (own.schedule) {
    const Scheduler& schedule = *own.schedule;
    config.lr_scheduler = own_name(c10::demangle(typeid(schedule).name()));
  }
  return config;
}

void check_parts(const TrainConfig& config, const OwnParts& own) {
  if (own.model.is_empty()) {
    refuse_own(
        "the run has no model",
        "set .own.model; named_parts(config) makes the one that settings name");
  }
  if (!own.has_data()) {
    refuse_own(
        "the run has no data",
        "set .own.train_data; named_parts(config) opens those that settings "
        "name");
  }
  if (own.train_data == nullptr && !config.test_only) {
    refuse_own(
        "the program gave test data, but no training data",
        "set .own.train_data, too; .test_only needs none");
  }
  if (config.test_only && !own.has_test()) {
    refuse_own(
        "a test only, and the program gave no test data",
        "set .own.test_data");
  }
  if (!config.test_only && own.train_data->size() == 0) {
    refuse_own(
        "the training data have no samples",
        "look at where those of .own.train_data come from");
  }
  if (own.task.is_empty() && !own.task.metrics.empty()) {
    refuse_own("the program's task has metrics, but no loss", "set .task.loss");
  }
  check_columns(own.task);
  if (own.optimizer && !is_over(own.model.module(), **own.optimizer)) {
    refuse_own(
        "the program's optimizer has a parameter that is not the model's: its "
        "steps would not change the model",
        "make the optimizer of the parameters of .own.model");
  }
  if (own.schedule && !own.optimizer) {
    refuse_own(
        "the program gave a schedule without the optimizer that it is of",
        "set .own.optimizer, too");
  }
  if (own.schedule && own.schedule->optimizer() != *own.optimizer) {
    refuse_own(
        "the program's schedule is of another optimizer: it would not change "
        "the rates of the run",
        "make the schedule of .own.optimizer");
  }
  refuse_missing("optimizer", config.opt, own.optimizer.has_value());
  refuse_missing("schedule", config.lr_scheduler, own.schedule != nullptr);
}

} // namespace lockstep::train
