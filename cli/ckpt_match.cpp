// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt match FILE MODEL`: FILE's weights under MODEL's names, by
// position, with the shapes as proof.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

constexpr const char* kMatchSchema = "lockstep.ckpt.match/1";
constexpr std::size_t kNameBytes = 200;

struct MatchArgs {
  EditArgs edit = {};
  std::string model = {};
  bool partial = false;
};

// What both files hold, and the plan.
struct Plan {
  std::vector<ckpt::NamedShape> file = {};
  std::vector<ckpt::NamedShape> model = {};
  ckpt::PositionMatch match = {};
  // Tensors of the file that are no entries of its weights: no name of the
  // model is for them.
  std::vector<std::string> apart = {};

  [[nodiscard]] bool is_complete() const {
    return match.is_complete() && apart.empty();
  }
};

Result<std::vector<std::string>> tensors_apart(const ckpt::Value& weights) {
  const ckpt::Dict* dict = weights.as_dict();
  if (dict == nullptr) {
    return ckpt::unnamed_tensors(weights);
  }
  std::unordered_set<std::string> entries;
  for (const auto& [key, value] : dict->items) {
    if (value.as_tensor() != nullptr) {
      entries.insert(ckpt::key_text(key));
    }
  }
  std::vector<std::string> names;
  LOCKSTEP_TRY(ckpt::for_each_tensor(
      weights,
      [&](const std::string& name, const ckpt::Tensor& /*tensor*/) {
        if (!entries.contains(name)) {
          names.push_back(name);
        }
      }));
  return names;
}

Result<Plan> make_plan(const ckpt::Value& file, const ckpt::Value& model) {
  Plan plan;
  const ckpt::Value weights = ckpt::locate_weights(file).value;
  LOCKSTEP_ASSIGN(plan.file, ckpt::shapes_of(weights));
  LOCKSTEP_ASSIGN(plan.apart, tensors_apart(weights));
  LOCKSTEP_ASSIGN(
      plan.model,
      ckpt::shapes_of(ckpt::locate_weights(model).value));
  LOCKSTEP_ASSIGN(plan.match, ckpt::match_by_position(plan.file, plan.model));
  return plan;
}

Json plan_json(const Plan& plan) {
  const auto pair_row = [&plan](const ckpt::PositionPair& pair) {
    const ckpt::NamedShape& from = plan.file[pair.from];
    return Json::object()
        .set("from", from.name)
        .set("to", plan.model[pair.to].name)
        .set("shape", Json::array(from.sizes));
  };
  return Json::object()
      .set("pairs", Json::array(plan.match.pairs, pair_row))
      .set("missing_keys", Json::array(plan.match.missing_keys))
      .set("unexpected_keys", Json::array(plan.match.unexpected_keys))
      .set("apart", Json::array(plan.apart));
}

std::string apart_text(const Plan& plan) {
  return format(
      "{} of the weights: {}",
      counted(
          plan.apart.size(),
          "tensor is no entry",
          "tensors are no entries"),
      some_names(plan.apart));
}

std::string plan_text(const Plan& plan) {
  std::size_t from_width = 0;
  std::size_t to_width = 0;
  for (const ckpt::PositionPair& pair : plan.match.pairs) {
    const auto& from = plan.file[pair.from];
    const auto& to = plan.model[pair.to];
    from_width = std::max(from_width, escape(from.name, kNameBytes).size());
    to_width = std::max(to_width, escape(to.name, kNameBytes).size());
  }
  std::string text;
  for (const ckpt::PositionPair& pair : plan.match.pairs) {
    const auto& from = plan.file[pair.from];
    std::string left = escape(from.name, kNameBytes);
    std::string right = escape(plan.model[pair.to].name, kNameBytes);
    left.resize(std::max(from_width, left.size()), ' ');
    right.resize(std::max(to_width, right.size()), ' ');
    text += format(
        "{} -> {}  {}\n",
        left,
        right,
        ckpt::shape_text({.sizes = from.sizes}));
  }
  text += ckpt::leftovers_text(plan.match);
  return text + (plan.apart.empty() ? "" : apart_text(plan) + "\n");
}

Error left_over(const Plan& plan) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const auto& names) {
    if (!names.empty()) {
      parts.push_back(format(
          "{} {}: {}",
          counted(names.size(), "key is", "keys are"),
          what,
          some_names(names)));
    }
  };
  add("missing", plan.match.missing_keys);
  add("unexpected", plan.match.unexpected_keys);
  if (!plan.apart.empty()) {
    parts.push_back(apart_text(plan));
  }
  return {
      .code = ErrorCode::kMismatch,
      .op = "ckpt.match",
      .message = join(parts, ", ") + "; nothing was written",
      .hint = "--partial writes the keys that match",
      .detail = "E_LEFT_OVER"};
}

// Nothing without --output.
Result<std::optional<Written>> write_matched(
    const MatchArgs& args,
    const ckpt::Checkpoint& file,
    const Plan& plan,
    const ckpt::Limits& limits) {
  if (args.edit.target.path.empty()) {
    return std::optional<Written>();
  }
  LOCKSTEP_ASSIGN(
      std::string format,
      format_of_edit(file, args.edit.file, args.edit.target.path));
  LOCKSTEP_ASSIGN(
      const auto target,
      CheckedTarget::check(
          args.edit.target,
          {.format = std::move(format),
           .inputs = {args.edit.file, args.model},
           .result = "weights under other names",
           .limits = limits}));
  if (!plan.is_complete() && !args.partial) {
    return left_over(plan);
  }
  LOCKSTEP_ASSIGN(
      const ckpt::Edited edited,
      ckpt::rename_by_position(file.root, plan.model, plan.match));
  LOCKSTEP_ASSIGN(Written written, write_edit(target, file, edited.root));
  return std::optional(std::move(written));
}

Result<int> run_match(const MatchArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input model_input, Input::open(args.model));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint model, model_input.load(common.load));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.edit.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  warn_of_left_out(file);
  LOCKSTEP_ASSIGN(const Plan plan, make_plan(file.root, model.root));
  LOCKSTEP_ASSIGN(
      const auto written,
      write_matched(args, file, plan, common.load.limits));
  if (common.json) {
    Json json = plan_json(plan);
    if (written) {
      set_written(json, *written);
    }
    print_result(kMatchSchema, std::move(json));
  } else {
    print(
        plan_text(plan) +
        format(
            "matched by position: {} of {}\n",
            plan.match.pairs.size(),
            counted(plan.file.size(), "entry", "entries")) +
        (written ? wrote_text(*written) : ""));
  }
  return plan.is_complete() || args.partial ? 0 : 1;
}

} // namespace

Runner setup_match(CLI::App& app, const Common& common) {
  auto args = std::make_shared<MatchArgs>();
  app.add_option("FILE", args->edit.file, "checkpoint with the weights")
      ->required();
  app.add_option("MODEL", args->model, "checkpoint with the wanted names")
      ->required();
  app.add_option(
      "-o,--output",
      args->edit.target.path,
      "write FILE's weights under MODEL's names here");
  add_target_flags(app, args->edit.target);
  app.add_flag(
      "--partial",
      args->partial,
      "accept that some keys are left over");
  return [args, &common] { return run_match(*args, common); };
}

} // namespace lockstep::cli
