// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/program.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/internal/structures.h"
#include "lockstep/tensor/internal/batch_norms.h"
#include "lockstep/tensor/internal/dtype_map.h"

namespace lockstep {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedInputKind;
using ckpt::ExportedKind;
using ckpt::ExportedOutput;
using ckpt::ExportedOutputKind;

/// A module of the Python net: names of parameters and buffers, a mode.
class ProgramPart : public torch::nn::Module, public BatchNormPart {
 public:
  ProgramPart(const std::string& python_class, bool calls_batch_norm)
      : torch::nn::Module(python_class), calls_batch_norm_(calls_batch_norm) {}

  [[nodiscard]] bool calls_batch_norm() const override {
    return calls_batch_norm_;
  }

 private:
  bool calls_batch_norm_;
};

bool is_saved(const ExportedInput& input) {
  return input.kind == ExportedInputKind::kParameter ||
         (input.kind == ExportedInputKind::kBuffer && input.is_persistent);
}

bool is_users(const ExportedInput& input) {
  return input.kind == ExportedInputKind::kUser ||
         input.kind == ExportedInputKind::kConstant;
}

[[noreturn]] void wrong_value(
    const std::string& name,
    const ProgramValue& value,
    const std::string& expected) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "program.run",
       .message = format(
           "input '{}': expected {}, got {}",
           name,
           expected,
           value.describe()),
       .detail = "E_PROGRAM_INPUT"});
}

// A number or a text that the export fixed.
void check_constant(
    const ExportedInput& input,
    const std::string& name,
    const ProgramValue& value) {
  const ckpt::ExportedArgument& fixed = input.argument;
  const ProgramValue expected =
      fixed.kind == ExportedKind::kInt      ? ProgramValue(fixed.integer)
      : fixed.kind == ExportedKind::kFloat  ? ProgramValue(fixed.number)
      : fixed.kind == ExportedKind::kBool   ? ProgramValue(fixed.integer != 0)
      : fixed.kind == ExportedKind::kString ? ProgramValue(fixed.text)
                                            : ProgramValue();
  if (value.describe() != expected.describe()) {
    wrong_value(name, value, expected.describe() + ", which the export fixed");
  }
}

// The value of one input of the user's; null: the constant of the file.
c10::IValue take_input(
    const ExportedInput& input,
    const std::string& name,
    const ProgramValue* value) {
  if (value == nullptr) {
    return {};
  }
  if (input.kind == ExportedInputKind::kConstant) {
    check_constant(input, name, *value);
    return {};
  }
  const bool is_tensor = input.argument.kind == ExportedKind::kTensor;
  if (is_tensor != value->is_tensor() ||
      (is_tensor && !value->tensor().defined())) {
    wrong_value(name, *value, is_tensor ? "a tensor" : "a number");
  }
  return value->ivalue();
}

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? "" : path.substr(0, dot);
}

} // namespace

ProgramImpl::ProgramImpl(
    std::shared_ptr<const program::ProgramData> data,
    std::vector<at::Tensor> tensors)
    : data_(std::move(data)), tensors_(std::move(tensors)) {
  register_parts();
  if (data_->flags > 0 && data_->flags_on == 0) {
    Model::train(false);
  }
}

// In the order of named_parameters, then of named_buffers, as far as a tree
// has it.
void ProgramImpl::register_parts() {
  const auto& inputs = data_->model->inputs;
  std::set<std::string_view> known; // torch 2.6 names tied ones alike
  for (const bool is_parameter : {true, false}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ExportedInput& input = inputs[i];
      const bool is_of_kind =
          is_parameter == (input.kind == ExportedInputKind::kParameter);
      if (!is_saved(input) || !is_of_kind ||
          !known.insert(input.target).second) {
        continue;
      }
      const auto part = part_at(parent_of(input.target));
      const std::string name = input.target.substr(input.target.rfind('.') + 1);
      if (is_parameter) {
        part->register_parameter(
            name,
            tensors_[i],
            tensors_[i].requires_grad());
      } else {
        part->register_buffer(name, tensors_[i]);
      }
    }
  }
  parts_.push_back(nullptr); // this module, which must not own itself
  for (std::size_t i = 1; i < data_->parts.size(); ++i) {
    parts_.push_back(part_at(data_->parts[i]));
  }
}

std::shared_ptr<torch::nn::Module> ProgramImpl::part_at(std::string_view path) {
  std::shared_ptr<torch::nn::Module> part(this, [](torch::nn::Module*) {});
  const std::string_view whole = path;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string name(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    const std::size_t left = path.size() + (path.empty() ? 0 : 1);
    const auto children = part->named_children();
    const auto* child = children.find(name);
    if (child == nullptr) {
      const std::string_view own = whole.substr(0, whole.size() - left);
      const auto known = data_->part_classes.find(own);
      made_.push_back(part->register_module(
          name,
          std::make_shared<ProgramPart>(
              known == data_->part_classes.end() ? "Module" : known->second,
              data_->batch_norms.contains(own))));
    }
    part = child != nullptr ? *child : made_.back();
  }
  return part;
}

at::Tensor ProgramImpl::single(const ProgramValue& result) {
  return result.tensor();
}

at::Tensor ProgramImpl::forward(const at::Tensor& x) {
  return single(forward(ProgramArguments{.args = {x}}));
}

ProgramValue ProgramImpl::forward(const ProgramArguments& arguments) {
  const ckpt::ExportedModel& model = *data_->model;
  const std::vector<std::string>& names = data_->input_names;
  const auto values = program::flatten_arguments(model, arguments);
  std::vector<c10::IValue> inputs(model.inputs.size());
  std::vector<c10::IValue> given;
  c10::Device device = c10::kCPU;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (tensors_[i].defined()) {
      inputs[i] = tensors_[i];
      device = tensors_[i].device();
    } else if (is_users(model.inputs[i])) {
      const std::size_t place = given.size();
      inputs[i] = take_input(model.inputs[i], names[place], values[place]);
      given.push_back(inputs[i]);
      device = inputs[i].isTensor() ? inputs[i].toTensor().device() : device;
    }
  }
  data_->sizes.check(given, names);
  data_->guards.check(given);
  std::vector<std::uint8_t> training;
  training.reserve(parts_.size());
  for (const auto& part : parts_) {
    training.push_back(
        (part == nullptr ? is_training() : part->is_training()) ? 1 : 0);
  }
  const program::Machine machine{.device = device, .training = training};
  for (const ExportedOutput& output : model.outputs) {
    if (output.kind == ExportedOutputKind::kBufferMutation) {
      // Backward needs what the buffer was.
      const auto place = std::ranges::find(
          model.inputs,
          output.target,
          &ExportedInput::target);
      auto& input =
          inputs[static_cast<std::size_t>(place - model.inputs.begin())];
      input = input.toTensor().clone();
    }
  }
  auto outputs = program::run_block(*data_->block, inputs, machine);
  apply_mutations(outputs, inputs, machine.training.front() != 0);
  return program::build_results(model, std::move(outputs));
}

// Takes those outputs away that are new values of buffers and inputs.
void ProgramImpl::apply_mutations(
    std::vector<c10::IValue>& outputs,
    const std::vector<c10::IValue>& inputs,
    bool is_training) {
  const at::NoGradGuard no_grad;
  const ckpt::ExportedModel& model = *data_->model;
  std::size_t kept = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const ExportedOutput& output = model.outputs[o];
    const bool is_buffer = output.kind == ExportedOutputKind::kBufferMutation;
    if (!is_buffer && output.kind != ExportedOutputKind::kUserInputMutation) {
      outputs[kept] = std::move(outputs[o]);
      kept += 1;
      continue;
    }
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      const ExportedInput& input = model.inputs[i];
      const bool is_target =
          is_buffer ? input.target == output.target
                    : is_users(input) && input.argument.text == output.target;
      if (is_target && (is_training || !program::is_batch_counter(input))) {
        const at::Tensor& to = is_buffer ? tensors_[i] : inputs[i].toTensor();
        to.copy_(outputs[o].toTensor());
      }
    }
  }
  outputs.resize(kept);
}

std::shared_ptr<torch::nn::Module> ProgramImpl::clone(
    const std::optional<c10::Device>& device) const {
  const at::NoGradGuard no_grad;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies;
  std::vector<at::Tensor> tensors(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& tensor = tensors_[i];
    if (!tensor.defined()) {
      continue;
    }
    at::Tensor& copy = copies[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) {
      copy = tensor.detach();
      copy =
          device && *device != copy.device() ? copy.to(*device) : copy.clone();
      copy.set_requires_grad(tensor.requires_grad());
    }
    tensors[i] = copy;
  }
  auto copy = std::make_shared<ProgramImpl>(data_, std::move(tensors));
  copy->Model::train(is_training());
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    if (copy->parts_[i]->is_training() != parts_[i]->is_training()) {
      copy->parts_[i]->train(parts_[i]->is_training());
    }
  }
  return copy;
}

void ProgramImpl::train(bool on) {
  if (!on && !data_->unswitchable.empty()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "program.eval",
         .message = format(
             "node {} trains and cannot be switched",
             data_->unswitchable.front()),
         .hint = "export the net without run_decompositions",
         .detail = "E_PROGRAM"});
  }
  if (on && data_->flags > 0 && data_->flags_on == 0) {
    TORCH_WARN(
        "the program ",
        data_->path,
        " was exported in eval mode: none of its ",
        data_->flags,
        " training flags is on, so that dropout and batch norms do not train. "
        "Export net.train()");
  }
  Model::train(on);
}

void ProgramImpl::to(
    c10::Device device,
    at::ScalarType dtype,
    bool non_blocking) {
  Model::to(device, dtype, non_blocking);
  move_unsaved(device, dtype);
}

void ProgramImpl::to(at::ScalarType dtype, bool non_blocking) {
  Model::to(dtype, non_blocking);
  move_unsaved(std::nullopt, dtype);
}

void ProgramImpl::to(c10::Device device, bool non_blocking) {
  Model::to(device, non_blocking);
  move_unsaved(device, std::nullopt);
}

// Buffers that LibTorch does not know of; constants keep their type, as in
// Python.
void ProgramImpl::move_unsaved(
    std::optional<c10::Device> device,
    std::optional<at::ScalarType> dtype) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const ExportedInput& input = data_->model->inputs[i];
    if (!tensors_[i].defined() || is_saved(input)) {
      continue;
    }
    const bool converts = dtype && input.kind == ExportedInputKind::kBuffer &&
                          tensors_[i].is_floating_point();
    tensors_[i] = tensors_[i].to(
        device.value_or(tensors_[i].device()),
        converts ? *dtype : tensors_[i].scalar_type());
  }
}

std::vector<std::pair<std::string, at::Tensor>> ProgramImpl::unsaved_tensors()
    const {
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].defined() && !is_saved(data_->model->inputs[i])) {
      found.emplace_back(data_->model->inputs[i].target, tensors_[i]);
    }
  }
  return found;
}

std::size_t ProgramImpl::num_nodes() const {
  return data_->nodes;
}

} // namespace lockstep
