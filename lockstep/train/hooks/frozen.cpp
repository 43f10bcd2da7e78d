// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/frozen.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/batch_norms.h"

namespace lockstep::train {
namespace {

[[noreturn]] void refuse_freeze(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.freeze",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_FREEZE"});
}

bool is_in(std::string_view name, std::string_view part) {
  return name == part ||
         (name.starts_with(part) && name.substr(part.size()).starts_with("."));
}

// The names that `part` may have been meant for.
std::vector<std::string> parts_of(const std::vector<std::string>& names) {
  std::set<std::string> parts;
  for (const std::string& name : names) {
    for (auto dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      parts.insert(name.substr(0, dot));
    }
    parts.insert(name);
  }
  return {parts.begin(), parts.end()};
}

// Without the empty ones that commas at the ends leave.
std::vector<std::string> named_in(const std::string& names) {
  std::vector<std::string> parts = split(names, ',');
  std::erase(parts, "");
  if (parts.empty()) {
    refuse_freeze(
        format("'{}' names no part of the model", escape(names)),
        "--freeze conv1,layer1, for example");
  }
  return parts;
}

class Frozen final : public StepHook {
 public:
  Frozen(torch::nn::Module& module, const FreezeOptions& options)
      : module_(module),
        parts_(named_in(options.names)),
        until_(options.until) {
    std::vector<std::string> names;
    for (const auto& item : module.named_parameters()) {
      names.push_back(item.key());
    }
    for (const std::string& part : parts_) {
      take(part, names);
    }
    const std::vector<at::Tensor> all = module.parameters();
    if (std::ranges::none_of(all, [&](const at::Tensor& parameter) {
          return parameter.requires_grad() && !is_taken(parameter);
        })) {
      refuse_freeze(
          "all parameters are frozen: there is nothing to train",
          "--freeze names parts of the model");
    }
    // Nothing above has changed the module.
    for (at::Tensor& parameter : parameters_) {
      parameter.set_requires_grad(false);
    }
    freeze_norms();
  }
  ~Frozen() override {
    release();
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

  [[nodiscard]] std::string text() const override {
    return format(
        "{} frozen: {} of {} ({}){}",
        join(parts_, ","),
        parameters_.size(),
        counted(module_.parameters().size(), "parameter"),
        counted(norms_.size(), "batch norm"),
        until_ > 0 ? format(", until epoch {}", until_) : std::string());
  }
  void begin_epoch(const StepScope& scope) override {
    const bool is_frozen = until_ == 0 || scope.epoch < until_;
    for (at::Tensor& parameter : parameters_) {
      parameter.set_requires_grad(!is_frozen);
    }
    if (!module_.is_training()) { // a step would switch all that is in it
      module_.train(true);
    }
    for (const auto& norm : norms_) {
      norm->train(!is_frozen);
    }
  }
  void end_run() noexcept override {
    release();
  }

 private:
  // Once: afterwards the module is the program's. Norms are as the module
  // around them is by then.
  void release() noexcept {
    if (std::exchange(is_released_, true)) {
      return;
    }
    for (at::Tensor& parameter : parameters_) {
      parameter.set_requires_grad(true);
    }
    for (const auto& norm : norms_) {
      norm->train(module_.is_training());
    }
  }
  void take(const std::string& part, const std::vector<std::string>& names) {
    bool is_found = false;
    for (const auto& item : module_.named_parameters()) {
      if (is_in(item.key(), part)) {
        is_found = true;
        if (item.value().requires_grad() && !is_taken(item.value())) {
          parameters_.push_back(item.value());
        }
      }
    }
    if (!is_found) {
      const std::vector<std::string> parts = parts_of(names);
      const std::string near = nearest(part, parts);
      refuse_freeze(
          format(
              "no parameter is called '{}', or begins with it and a point",
              escape(part)),
          near.empty() ? format("the parameters are {}", some_names(names))
                       : format("did you mean {}?", near));
    }
  }
  [[nodiscard]] bool is_taken(const at::Tensor& parameter) const {
    return std::ranges::any_of(parameters_, [&](const at::Tensor& taken) {
      return taken.is_same(parameter);
    });
  }
  // Those of which this hook froze all parameters, and those without any in a
  // frozen part.
  void freeze_norms() {
    const auto taken = [this](const at::Tensor& parameter) {
      return is_taken(parameter);
    };
    for (const auto& item : module_.named_modules()) {
      const auto& module = item.value();
      const std::vector<at::Tensor> own = module->parameters();
      const bool is_here = own.empty() ? std::ranges::any_of(
                                             parts_,
                                             [&](const std::string& part) {
                                               return is_in(item.key(), part);
                                             })
                                       : std::ranges::all_of(own, taken);
      const bool is_programs = module_.is_training() && !module->is_training();
      if (is_batch_norm(*module) && is_here && !is_programs) {
        norms_.push_back(module);
        module->train(false);
      }
    }
  }

  torch::nn::Module& module_;
  std::vector<std::string> parts_;
  std::int64_t until_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::shared_ptr<torch::nn::Module>> norms_;
  bool is_released_ = false;
};

} // namespace

std::shared_ptr<StepHook> freeze(
    torch::nn::Module& module,
    const FreezeOptions& options) {
  return std::make_shared<Frozen>(module, options);
}

} // namespace lockstep::train
