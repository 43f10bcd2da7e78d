// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/program.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/part_tree.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/internal/structures.h"
#include "lockstep/tensor/internal/dtype_map.h"

namespace lockstep {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedInputKind;
using ckpt::ExportedKind;

bool is_parameter(const ExportedInput& input) {
  return input.kind == ExportedInputKind::kParameter;
}

// As LibTorch knows parameters and buffers.
bool is_registered(const ExportedInput& input) {
  return is_parameter(input) || input.kind == ExportedInputKind::kBuffer;
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

/// What a user gives for an input of the graph.
struct ValueKind {
  ExportedKind kind = {};
  std::string_view name = {};
  bool (*fits)(const ProgramValue& value) = nullptr;
};

bool is_whole(const ProgramValue& value) {
  return value.ivalue().isInt() || value.ivalue().isBool();
}

constexpr std::array kValueKinds = {
    ValueKind{
        ExportedKind::kTensor,
        "a tensor",
        [](const ProgramValue& value) {
          return value.is_tensor() && value.tensor().defined();
        }},
    ValueKind{ExportedKind::kSymInt, "a whole number", is_whole},
    ValueKind{ExportedKind::kInt, "a whole number", is_whole},
    ValueKind{ExportedKind::kSymBool, "True or False", is_whole},
    ValueKind{
        ExportedKind::kSymFloat,
        "a number",
        [](const ProgramValue& value) { return value.ivalue().isScalar(); }}};

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
  const auto* row =
      std::ranges::find(kValueKinds, input.argument.kind, &ValueKind::kind);
  if (row != kValueKinds.end() && !row->fits(*value)) {
    wrong_value(name, *value, std::string(row->name));
  }
  return value->ivalue();
}

// Where literals of devices lead: where the weights are, else the inputs.
c10::Device device_of(
    const std::vector<at::Tensor>& weights,
    const std::vector<c10::IValue>& given) {
  const auto weight = std::ranges::find_if(weights, &at::Tensor::defined);
  if (weight != weights.end()) {
    return weight->device();
  }
  c10::Device device = c10::kCPU;
  for (const c10::IValue& value : given) {
    // An operator takes a number from the CPU among tensors of a GPU.
    if (value.isTensor() && (device.is_cpu() || value.toTensor().dim() > 0)) {
      device = value.toTensor().device();
    }
  }
  return device;
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

// In the order of named_parameters, then of named_buffers.
void ProgramImpl::register_parts() {
  const auto& inputs = data_->model->inputs;
  program::PartTree tree(*this, data_);
  program::PartTree::Names parameters;
  program::PartTree::Names buffers;
  for (const ExportedInput& input : inputs) {
    if (is_registered(input)) {
      (is_parameter(input) ? parameters : buffers).push_back(input.target);
    }
  }
  tree.add_all(parameters, buffers);
  std::set<std::string_view> known; // torch 2.6 names tied ones alike
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ExportedInput& input = inputs[i];
    if (!is_registered(input) || !known.insert(input.target).second) {
      continue;
    }
    const auto part = tree.at(program::parent_of(input.target));
    const std::string name = input.target.substr(input.target.rfind('.') + 1);
    if (is_parameter(input)) {
      part->register_parameter(name, tensors_[i], tensors_[i].requires_grad());
    } else {
      part->register_buffer(name, tensors_[i]);
    }
  }
  parts_.push_back(nullptr); // this module, which must not own itself
  for (std::size_t i = 1; i < data_->parts.size(); ++i) {
    parts_.push_back(tree.at(data_->parts[i]));
  }
}

at::Tensor ProgramImpl::single(const ProgramValue& result) {
  const ProgramValue* value = &result;
  while (value->items().size() == 1) {
    value = value->items().data();
  }
  return value->tensor();
}

std::vector<at::Tensor> ProgramImpl::parameters(bool recurse) const {
  std::vector<at::Tensor> all = Model::parameters(recurse);
  std::set<const c10::TensorImpl*> known;
  std::erase_if(all, [&known](const at::Tensor& tensor) {
    return !known.insert(tensor.unsafeGetTensorImpl()).second;
  });
  return all;
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
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (tensors_[i].defined()) {
      inputs[i] = tensors_[i];
    } else if (is_users(model.inputs[i])) {
      const std::size_t place = given.size();
      inputs[i] = take_input(model.inputs[i], names[place], values[place]);
      given.push_back(inputs[i]);
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
  const program::Machine machine{
      .device = device_of(tensors_, given),
      .training = training};
  for (const program::Mutation& mutation : data_->mutations) {
    if (mutation.is_buffer) {
      // Backward needs what the buffer was.
      c10::IValue& input = inputs[mutation.inputs.front()];
      input = input.toTensor().clone();
    }
  }
  auto outputs = program::run_block(*data_->block, inputs, machine);
  apply_mutations(outputs, inputs, training);
  return program::build_results(model, std::move(outputs));
}

// Takes those outputs away that are new values of buffers and inputs.
void ProgramImpl::apply_mutations(
    std::vector<c10::IValue>& outputs,
    const std::vector<c10::IValue>& inputs,
    const std::vector<std::uint8_t>& training) {
  const at::NoGradGuard no_grad;
  for (const program::Mutation& mutation : data_->mutations) {
    const c10::IValue value = std::move(outputs[mutation.output]);
    if (mutation.counts_in && training[*mutation.counts_in] == 0) {
      continue;
    }
    for (const std::size_t i : mutation.inputs) {
      const at::Tensor& to =
          mutation.is_buffer ? tensors_[i] : inputs[i].toTensor();
      to.copy_(value.toTensor());
    }
  }
  std::vector<c10::IValue> results;
  auto mutation = data_->mutations.begin();
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (mutation != data_->mutations.end() && mutation->output == o) {
      ++mutation;
    } else {
      results.push_back(std::move(outputs[o]));
    }
  }
  outputs = std::move(results);
}

std::shared_ptr<torch::nn::Module> ProgramImpl::clone(
    const std::optional<c10::Device>& device) const {
  const at::NoGradGuard no_grad;
  auto copy = std::make_shared<ProgramImpl>(
      data_,
      program::copy_tensors(tensors_, device));
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
  if (on && data_->flags > 0 && data_->flags_on == 0 &&
      !data_->has_warned->test_and_set()) {
    TORCH_WARN(
        "none of the ",
        data_->flags,
        " training flags of the program ",
        data_->path,
        " is on, so that dropout and batch norms do not train: it was exported "
        "in eval mode, or with all of them frozen. Export net.train()");
  }
  Model::train(on);
}

void ProgramImpl::to(
    c10::Device device,
    at::ScalarType dtype,
    bool non_blocking) {
  Model::to(device, non_blocking);
  convert(dtype, non_blocking);
  move_constants(device);
}

void ProgramImpl::to(at::ScalarType dtype, bool non_blocking) {
  convert(dtype, non_blocking);
}

// As Python's `to`, which leaves integers alone; LibTorch's does not.
void ProgramImpl::convert(at::ScalarType dtype, bool non_blocking) {
  const at::NoGradGuard no_grad;
  auto tensors = parameters();
  const auto more = buffers();
  tensors.insert(tensors.end(), more.begin(), more.end());
  for (at::Tensor& tensor : tensors) {
    if (tensor.is_floating_point() || tensor.is_complex()) {
      tensor.set_data(tensor.to(dtype, non_blocking));
    }
  }
}

void ProgramImpl::to(c10::Device device, bool non_blocking) {
  Model::to(device, non_blocking);
  move_constants(device);
}

// LibTorch does not know of them; they keep their type, as in Python.
void ProgramImpl::move_constants(c10::Device device) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].defined() && !is_registered(data_->model->inputs[i])) {
      tensors_[i] = tensors_[i].to(device);
    }
  }
}

bool ProgramImpl::is_unsaved(std::string_view buffer) const {
  return data_->unsaved_buffers.contains(buffer);
}

std::vector<std::pair<std::string, at::Tensor>> ProgramImpl::unsaved_tensors()
    const {
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const ExportedInput& input = data_->model->inputs[i];
    if (tensors_[i].defined() &&
        (!is_registered(input) ||
         data_->unsaved_buffers.contains(input.target))) {
      found.emplace_back(input.target, tensors_[i]);
    }
  }
  return found;
}

std::size_t ProgramImpl::num_nodes() const {
  return data_->nodes;
}

} // namespace lockstep
