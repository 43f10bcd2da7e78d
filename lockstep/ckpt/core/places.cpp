// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/places.h"

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {
namespace {

// Empty for a child that a name leads to, and for parameters of quantization.
std::string_view label_of(ChildSlot slot) {
  switch (slot) {
    case ChildSlot::kMember:
      return "<set>";
    case ChildSlot::kKey:
      return "<keys>";
    case ChildSlot::kAttributeKey:
      return "<attribute keys>";
    case ChildSlot::kAttribute:
    case ChildSlot::kTensorAttributes:
      return "<attributes>";
    case ChildSlot::kArgs:
      return "<args>";
    case ChildSlot::kElement:
    case ChildSlot::kItem:
    case ChildSlot::kState:
    case ChildSlot::kQuantizer:
      return "";
  }
  __builtin_unreachable();
}

} // namespace

std::string place_step(const Value& parent, const Child& child) {
  std::string label(label_of(child.slot));
  switch (child.slot) {
    case ChildSlot::kMember:
    case ChildSlot::kKey:
    case ChildSlot::kAttributeKey:
      return label + "." + std::to_string(child.index);
    case ChildSlot::kAttribute:
      return label + "." +
             key_text(parent.as_dict()->attributes[child.index].first);
    default:
      return label;
  }
}

std::string_view unnamed_child(const Value& module) {
  constexpr std::string_view kFolder =
      "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.";
  const Object* object = module.as_object();
  std::string_view name =
      object == nullptr ? std::string_view() : object->global;
  if (!name.starts_with(kFolder)) {
    return "";
  }
  name.remove_prefix(kFolder.size());
  return name == "CheckpointWrapper" || name == "OffloadWrapper"
             ? "_checkpoint_wrapped_module"
             : "";
}

} // namespace lockstep::ckpt
