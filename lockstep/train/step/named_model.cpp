// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/named_model.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/program_facts.h"
#include "lockstep/program/program.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kClassDimensions = 2; // with the batch
constexpr std::size_t kImageDimensions = 4;

[[noreturn]] void
refuse_file(const std::string& name, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.model",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = name,
       .detail = "E_PROGRAM_INPUT"});
}

ProgramFacts facts_of(const std::string& name) {
  ProgramFacts facts = read_program_facts(name);
  if (facts.inputs.size() != 1 || facts.outputs.size() != 1 ||
      facts.numbers != 0 || facts.inputs[0].sizes.empty()) {
    refuse_file(
        name,
        format(
            "a run needs a net of one tensor that gives one; this one takes {} "
            "and gives {}",
            facts.inputs.size() + facts.numbers,
            facts.outputs.size()),
        "a program of yours trains it: load_program and TrainerOptions::own");
  }
  const std::size_t dimensions = facts.outputs[0].sizes.size();
  if (dimensions != kClassDimensions && dimensions != kImageDimensions) {
    refuse_file(
        name,
        format(
            "a run needs results of {} dimensions, classes of samples, or {}, "
            "classes of pixels; this one gives {}",
            kClassDimensions,
            kImageDimensions,
            dimensions),
        "a program of yours trains it: load_program and TrainerOptions::own");
  }
  return facts;
}

void check_size(
    const std::string& name,
    std::string_view what,
    const ProgramSize& size,
    std::int64_t wanted) {
  if (size.fixed && *size.fixed != wanted) {
    refuse_file(
        name,
        format(
            "the program has {} {}; the data have {}",
            *size.fixed,
            what,
            wanted),
        "export the net for these data");
  }
}

// The batches of a run have many sizes: the last of an epoch, those of devices.
void check_batch(const std::string& name, const ProgramInput& input) {
  const std::optional<std::int64_t> fixed = input.sizes[0].fixed;
  if (fixed) {
    refuse_file(
        name,
        format(
            "input '{}' size 0 is the batch, exported for {}; a run has "
            "batches of other sizes",
            input.name,
            *fixed),
        format(
            "export with dynamic_shapes={{'{}': {{0: "
            "torch.export.Dim('batch')}}}}",
            input.name));
  }
}

} // namespace

bool is_named_model(std::string_view name) {
  const std::vector<std::string> known = model_names();
  return is_program_file(name) || std::ranges::find(known, name) != known.end();
}

ImageSizes named_image_sizes(std::string_view name) {
  if (!is_program_file(name)) {
    return image_sizes(name);
  }
  const ProgramFacts facts = facts_of(std::string(name));
  const auto& sizes = facts.inputs[0].sizes;
  if (sizes.size() != kImageDimensions) {
    return {};
  }
  const auto fixed = sizes[2].fixed ? sizes[2].fixed : sizes[3].fixed;
  return fixed ? ImageSizes{.smallest = *fixed, .largest = *fixed}
               : ImageSizes();
}

ModelOptions named_options(std::string_view name, ModelOptions asked) {
  if (is_program_file(name)) {
    const ProgramFacts facts = facts_of(std::string(name));
    const auto& inputs = facts.inputs[0].sizes;
    const auto& outputs = facts.outputs[0].sizes;
    if (inputs.size() == kImageDimensions) {
      asked.in_channels = inputs[1].fixed.value_or(asked.in_channels);
    }
    if (outputs.size() > 1) {
      asked.num_classes = outputs[1].fixed.value_or(asked.num_classes);
    }
  }
  return asked;
}

ModelTask named_model_task(std::string_view name) {
  if (!is_program_file(name)) {
    return model_task(name);
  }
  return facts_of(std::string(name)).outputs[0].sizes.size() == kImageDimensions
             ? ModelTask::kSegmentation
             : ModelTask::kClassification;
}

bool takes_shape(std::string_view name, std::size_t dimensions) {
  return is_program_file(name)
             ? facts_of(std::string(name)).inputs[0].sizes.size() ==
                   dimensions + 1
             : dimensions == kImageDimensions - 1 || name == "mlp";
}

std::shared_ptr<Model> make_named(
    const std::string& name,
    const ModelOptions& options) {
  if (!is_program_file(name)) {
    return make_model(name, options);
  }
  const ProgramFacts facts = facts_of(name);
  const ProgramInput& input = facts.inputs[0];
  check_batch(name, input);
  if (input.sizes.size() == kImageDimensions) {
    check_size(name, "channels", input.sizes[1], options.in_channels);
  }
  const auto& outputs = facts.outputs[0].sizes;
  if (outputs.size() > 1) {
    check_size(name, "outputs", outputs[1], options.num_classes);
  }
  // Whoever exports the net again may cut the file of a run.
  return load_program(name, {.use_mmap = false}).ptr();
}

std::vector<StatePart> program_parts(torch::nn::Module& model) {
  if (dynamic_cast<ProgramImpl*>(&model) == nullptr) {
    return {};
  }
  return {
      {.key = "program",
       .save =
           [&model](ValueBuilder&) {
             return ckpt::Value(dynamic_cast<ProgramImpl&>(model).digest());
           },
       .load =
           [&model](const ckpt::Value& saved) { check_program(model, saved); },
       .if_missing = IfMissing::kIgnore}};
}

void check_program(const torch::nn::Module& model, const ckpt::Value& saved) {
  const std::string digest = dynamic_cast<const ProgramImpl&>(model).digest();
  if (saved.text() != digest) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the checkpoint is of another program; expected the graph {}, "
             "got {}",
             escape(saved.text()),
             digest),
         .hint = "--model names the file that the run began with; a new run "
                 "may begin with --initial-checkpoint",
         .detail = "E_OTHER_MODEL"});
  }
}

} // namespace lockstep::train
