// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes of names, calls and persistent ids. Nothing is called.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "lockstep/ckpt/pickle/python_state.h"
#include "lockstep/ckpt/pickle/rebuild_tensor.h"
#include "lockstep/ckpt/pickle/tree_builder.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_type(std::string message) {
  return corrupt_file("E_PICKLE_TYPE", std::move(message));
}

// Attributes of a dict: a dict, or the pair (dict, slots) of other pickles.
const Dict* attributes_of_state(const Value& state) {
  const Tuple* pair = state.as_tuple();
  if (pair != nullptr && pair->items.size() == 2 && pair->items[1].is_none()) {
    return pair->items[0].as_dict();
  }
  return state.as_dict();
}

// Content of `bytearray(text, 'latin-1')`, as protocol 2 spells it.
std::string bytearray_text(const Tuple& args) {
  const std::string* text =
      args.items.empty() ? nullptr : args.items[0].as_string();
  return text == nullptr ? "" : latin1_from_utf8(*text).value_or("");
}

// What `Tensor.__setstate__` takes: (storage, offset, size, stride) of torch
// 0.1; (data, grad, hooks, requires_grad, volatile) of its variables;
// (requires_grad, volatile, hooks) after a Parameter.
Status build_tensor(Tensor& tensor, const Value& state) {
  const Tuple* parts = state.as_tuple();
  const std::size_t count = parts == nullptr ? 0 : parts->items.size();
  if (count == 4) {
    LOCKSTEP_ASSIGN(const auto view, rebuild_tensor(*parts));
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): what it makes
    const Tensor& built = *view->as_tensor();
    tensor.dtype = built.dtype;
    tensor.storage = built.storage;
    tensor.offset = built.offset;
    tensor.sizes = built.sizes;
    tensor.strides = built.strides;
    return {};
  }
  const Tensor* data = count == 5 ? parts->items[0].as_tensor() : nullptr;
  const bool* requires_grad = data != nullptr ? parts->items[3].as_bool()
                              : count == 3    ? parts->items[0].as_bool()
                                              : nullptr;
  if (requires_grad == nullptr) {
    return bad_type(format("state of type {} for a tensor", state.type_name()));
  }
  if (data != nullptr) {
    const bool is_parameter = tensor.is_parameter;
    tensor = *data;
    tensor.is_parameter = is_parameter;
  }
  tensor.requires_grad = *requires_grad;
  return keep_hooks(tensor, parts->items[2]);
}

TreeSlot tuple_of(std::span<TreeSlot> slots) {
  const std::uint64_t depth = depth_of(slots) + 1;
  return {Tuple{values_of(slots)}, depth};
}

Result<TreeSlot> call_with_keywords(
    const TreeSlot& callable,
    const TreeSlot& args,
    const TreeSlot& keywords) {
  const Object* object = callable.value.as_object();
  if (object == nullptr || !is_bare_global(*object)) {
    return bad_type("class of an object is not a name");
  }
  return TreeSlot{
      Object{
          .global = object->global,
          .args = std::make_shared<Value>(
              Value::tuple({args.value, keywords.value}))},
      std::max(keywords.depth, args.depth) + 2};
}

} // namespace

Result<TreeSlot> TreeBuilder::call(
    const Instruction& in,
    std::span<TreeSlot> taken) {
  switch (in.info->op) {
    case Op::kGlobal:
      return name(in.text, in.second, in);
    case Op::kStackGlobal: {
      const std::string* module = taken[0].value.as_string();
      const std::string* text = taken[1].value.as_string();
      if (module == nullptr || text == nullptr) {
        return bad_type("module and name are not strings");
      }
      return name(*module, *text, in);
    }
    case Op::kInst: {
      LOCKSTEP_ASSIGN(const TreeSlot callable, name(in.text, in.second, in));
      return call_value(callable, tuple_of(taken), in);
    }
    case Op::kObj:
      if (taken.empty()) {
        return corrupt_file("E_STACK", "no class above MARK");
      }
      return call_value(taken[0], tuple_of(taken.subspan(1)), in);
    case Op::kReduce:
    case Op::kNewObj: // the same, nothing is run
      return call_value(taken[0], taken[1], in);
    case Op::kNewObjEx:
      return call_with_keywords(taken[0], taken[1], taken[2]);
    case Op::kPersId:
      return persistent(Value(in.text));
    case Op::kBinPersId:
      return persistent(taken[0].value);
    default:
      return read_error(
          ErrorCode::kUnsupported,
          "E_OPCODE",
          "needs data from outside the pickle");
  }
}

Result<TreeSlot> TreeBuilder::name(
    std::string_view module,
    std::string_view name,
    const Instruction& in) {
  LOCKSTEP_TRY(budget_.make(module.size() + name.size()));
  const std::string full = dotted_name(module, name);
  const std::size_t known = result.globals.size();
  note_global(full, in.offset);
  if (result.globals.size() != known) {
    LOCKSTEP_TRY(budget_.make(2 * (sizeof(GlobalUse) + full.size())));
  }
  return TreeSlot{global_value(full)};
}

Result<TreeSlot> TreeBuilder::call_value(
    const TreeSlot& callable,
    const TreeSlot& args,
    const Instruction& in) {
  const Tuple* tuple = args.value.as_tuple();
  if (tuple == nullptr) {
    return bad_type(format(
        "arguments are of type {}; expected a tuple",
        args.value.type_name()));
  }
  const std::uint64_t depth = std::max(callable.depth, args.depth) + 1;
  const Object* object = callable.value.as_object();
  if (object == nullptr) {
    return bad_type(
        format("call of a value of type {}", callable.value.type_name()));
  }
  if (!is_bare_global(*object)) {
    // The result of a call is called: both stay as they are.
    return TreeSlot{
        Object{
            .global = "<call>",
            .args = std::make_shared<Value>(
                Value::tuple({callable.value, args.value}))},
        depth + 1};
  }
  if (object->global == "builtins.getattr") {
    note_lookup(*tuple);
  }
  LOCKSTEP_TRY(budget_.make(bytes_of_call(object->global, *tuple)));
  LOCKSTEP_ASSIGN(Value value, call_global(object->global, args.value));
  if (const Bytes* bytes = value.as_bytes()) {
    note_bytes(bytes->data, in.offset);
  } else if (object->global == "builtins.bytearray") {
    const std::string content = bytearray_text(*tuple);
    LOCKSTEP_TRY(budget_.make(content.size()));
    note_bytes(content, in.offset);
  }
  return TreeSlot{std::move(value), depth};
}

Status TreeBuilder::build_dict(Dict& dict, const Value& state) {
  const Dict* attributes = attributes_of_state(state);
  if (dict.kind == Dict::Kind::kDict || attributes == nullptr ||
      attributes == &dict) {
    return bad_type(format("state of type {} for a dict", state.type_name()));
  }
  LOCKSTEP_TRY(budget_.make(2 * sizeof(Item) * attributes->items.size()));
  dict.attributes.insert(
      dict.attributes.end(),
      attributes->items.begin(),
      attributes->items.end());
  return {};
}

Status TreeBuilder::build(TreeSlot& target, TreeSlot& state) {
  LOCKSTEP_TRY(deepen(target, state.depth));
  if (Dict* dict = target.value.as_dict()) {
    return build_dict(*dict, state.value);
  }
  if (Tensor* tensor = target.value.as_tensor()) {
    return build_tensor(*tensor, state.value);
  }
  Object* object = target.value.as_object();
  if (object == nullptr || is_bare_global(*object)) {
    return bad_type(
        format("state for a value of type {}", target.value.type_name()));
  }
  if (object->state == nullptr) {
    object->state = std::make_shared<Value>(std::move(state.value));
    return {};
  }
  LOCKSTEP_TRY(
      budget_.make(bytes_of_copy(*object->state) + bytes_of_copy(state.value)));
  LOCKSTEP_ASSIGN(Value joined, joined_state(*object->state, state.value));
  object->state = std::make_shared<Value>(std::move(joined));
  return {};
}

Result<TreeSlot> TreeBuilder::persistent(const Value& id) {
  if (handler_ == nullptr) {
    return bad_type("persistent id outside a checkpoint");
  }
  LOCKSTEP_TRY(budget_.make(bytes_of_copy(id)));
  LOCKSTEP_ASSIGN(Value value, handler_->resolve(id));
  constexpr std::uint64_t kStorageDepth = 3;
  return TreeSlot{std::move(value), kStorageDepth};
}

} // namespace lockstep::ckpt::internal
