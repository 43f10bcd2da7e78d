// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/model/quantized_module.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Behind "torch.ao.nn." or, before torch 1.13, "torch.nn.": classes that save
// the scale and zero point of their output.
constexpr std::array<std::string_view, 7> kWithScale{
    "quantized.modules.linear.Linear",
    "quantized.modules.functional_modules.QFunctional",
    "quantized.dynamic.modules.linear.Linear",
    "intrinsic.quantized.modules.linear_relu.LinearReLU",
    "intrinsic.quantized.modules.linear_relu.LinearLeakyReLU",
    "intrinsic.quantized.modules.linear_relu.LinearTanh",
    "intrinsic.quantized.dynamic.modules.linear_relu.LinearReLU"};

// The state of a convolution: (in_channels, ..., padding_mode, weight, bias,
// scale, zero_point, training).
constexpr std::size_t kConvParts = 15;
constexpr std::size_t kConvWeight = 10;

// The class without the package that holds quantized layers; empty for others.
std::string_view quantized_class(const Value& module) {
  const Object* object = module.as_object();
  std::string_view name =
      object == nullptr ? std::string_view() : object->global;
  for (const std::string_view package : {"torch.ao.nn.", "torch.nn."}) {
    if (name.starts_with(package)) {
      name.remove_prefix(package.size());
      return name.find("quantized.") == std::string_view::npos ? "" : name;
    }
  }
  return "";
}

const std::vector<Value>* convolution_state(const Value& module) {
  const Object* object = module.as_object();
  const Tuple* state = object == nullptr || object->state == nullptr
                           ? nullptr
                           : object->state->as_tuple();
  const bool is_it =
      state != nullptr && state->items.size() == kConvParts &&
      quantized_class(module).find(".conv") != std::string_view::npos &&
      state->items[kConvWeight].as_tensor() != nullptr;
  return is_it ? &state->items : nullptr;
}

// A `torch.ScriptObject`: what it packs, and its class.
struct Packed {
  const Value* content = nullptr;
  std::string_view class_name = {};
};

Packed packed_in(const Value& value) {
  const Object* object = value.as_object();
  const Tuple* state = object == nullptr || object->state == nullptr ||
                               object->global != "torch.ScriptObject"
                           ? nullptr
                           : object->state->as_tuple();
  return state == nullptr || state->items.size() != 2
             ? Packed()
             : Packed{state->items.data(), state->items[1].text()};
}

// The one weight of an embedding: (version, [weight], [], [bits]).
const Value* embedding_weight(const Value& content) {
  const auto parts = content.elements();
  const auto tensors =
      parts == nullptr || parts->size() < 2 ? nullptr : (*parts)[1].elements();
  return tensors == nullptr || tensors->size() != 1 ? nullptr : tensors->data();
}

class QuantizedState {
 public:
  explicit QuantizedState(const Value& state) : state_(state) {}

  void add_attribute(std::string_view name) {
    if (const Value* value = state_.find(name)) {
      add(name, *value);
    }
  }
  void add(std::string_view name, const Value& value) {
    made_.items.emplace_back(Value(std::string(name)), value);
  }
  void add_scale(const Value* scale, const Value* zero_point) {
    if (scale == nullptr || !scale->number() || zero_point == nullptr ||
        zero_point->as_int() == nullptr) {
      return;
    }
    add("scale", internal::scalar_tensor(static_cast<float>(*scale->number())));
    add("zero_point", internal::scalar_tensor(*zero_point->as_int()));
  }
  void add_packed() {
    const Dict* attributes = state_.as_dict();
    for (std::size_t i = 0;
         attributes != nullptr && i < attributes->items.size();
         ++i) {
      const auto& [key, value] = attributes->items[i];
      const Packed packed = packed_in(value);
      if (packed.content == nullptr) {
        continue;
      }
      const bool is_linear =
          key.text() == "_packed_params" &&
          packed.class_name.ends_with(".quantized.LinearPackedParamsBase");
      const Value* weight = key.text() == "_packed_weight"
                                ? embedding_weight(*packed.content)
                                : nullptr;
      if (!is_linear && weight == nullptr) {
        made_.unread.emplace_back(key.text(), packed.class_name);
        continue;
      }
      add_attribute("dtype");
      add(key.text(), is_linear ? *packed.content : *weight);
    }
  }
  QuantizedEntries take() {
    return std::move(made_);
  }

 private:
  const Value& state_;
  QuantizedEntries made_;
};

} // namespace

bool is_packed_convolution(const Value& module) {
  return convolution_state(module) != nullptr;
}

QuantizedEntries quantized_entries(const Value& module) {
  const std::string_view name = quantized_class(module);
  if (name.empty() || module.as_object()->state == nullptr) {
    return {};
  }
  QuantizedState entries(*module.as_object()->state);
  const Value& state = *module.as_object()->state;
  if (const auto* parts = convolution_state(module)) {
    entries.add("weight", (*parts)[kConvWeight]);
    entries.add("bias", (*parts)[kConvWeight + 1]);
    entries.add_scale(&(*parts)[kConvWeight + 2], &(*parts)[kConvWeight + 3]);
    return entries.take();
  }
  if (std::ranges::find(kWithScale, name) != kWithScale.end()) {
    entries.add_scale(state.find("scale"), state.find("zero_point"));
  }
  if (name.starts_with("quantized.reference.")) {
    entries.add_attribute("weight_qscheme");
    entries.add_attribute("weight_dtype");
  }
  entries.add_packed();
  return entries.take();
}

} // namespace lockstep::ckpt
