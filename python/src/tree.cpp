// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/tree.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/array.h"
#include "python/src/errors.h"
#include "python/src/leaf.h"
#include "python/src/storage.h"
#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

void check(int status) {
  if (status < 0) {
    throw nb::python_error();
  }
}

constexpr const char* kShowHint =
    "'lockstep ckpt show FILE' prints such a file";

// As the library for what it does.
std::uint64_t allowed_steps(const TreeOptions& options) {
  constexpr std::uint64_t kStepsPerByte = 64;
  const std::uint64_t more = kStepsPerByte * options.file_bytes;
  return options.limits.max_steps > ~more ? ~std::uint64_t{0}
                                          : options.limits.max_steps + more;
}

// Functions that rebuild NumPy arrays.
bool is_numpy_call(std::string_view global) {
  constexpr std::array<std::string_view, 4> kCalls{
      "numpy.core.multiarray._reconstruct",
      "numpy._core.multiarray._reconstruct",
      "numpy.core.numeric._frombuffer",
      "numpy._core.numeric._frombuffer"};
  return std::ranges::find(kCalls, global) != kCalls.end();
}

// Whether the value is another object inside keys: a frozenset, a wrapped
// tensor, a tuple of them. 0 or 1.
std::size_t is_other_in_key(const ckpt::Value& value, bool is_in_key) {
  const ckpt::Object* object = value.as_object();
  return is_in_key && (object == nullptr || is_numpy_call(object->global)) ? 1
                                                                           : 0;
}

} // namespace

nb::object StorageBuffers::buffer_of(
    const std::shared_ptr<ckpt::Storage>& storage,
    const std::string& path) {
  const auto found = rows_.find(storage.get());
  if (found != rows_.end()) {
    return found->second.buffer;
  }
  nb::object buffer = make_storage_buffer(*storage, path);
  rows_[storage.get()] = {.storage = storage, .buffer = buffer};
  return buffer;
}

TreeConverter::TreeConverter(
    const TreeOptions& options,
    StorageBuffers& storages)
    : options_(&options),
      storages_(&storages),
      hash_steps_(allowed_steps(options)) {}

// Whether the child in this place is a key, or a part of one. An object has the
// hash of its identity, whatever it holds.
bool TreeConverter::holds_key(const Frame& frame, ckpt::ChildSlot slot) {
  return frame.value->as_object() == nullptr &&
         (frame.is_in_key || slot == ckpt::ChildSlot::kKey ||
          slot == ckpt::ChildSlot::kMember);
}

nb::object TreeConverter::convert(const ckpt::Value& value) {
  nb::object whole = enter({.value = &value}, false);
  while (!path_.empty()) {
    Frame& frame = path_.back();
    if (frame.next < frame.count) {
      const ckpt::Child child = ckpt::child_of(*frame.value, frame.next++);
      nb::object made = enter(child, holds_key(frame, child.slot));
      if (made.is_valid()) {
        deliver(child.slot, std::move(made));
      }
      continue;
    }
    nb::object made = end(frame);
    const ckpt::ChildSlot slot = frame.slot;
    path_.pop_back();
    if (path_.empty()) {
      whole = std::move(made);
    } else {
      deliver(slot, std::move(made));
    }
  }
  return whole;
}

// The object of a child, or none while its parts are to be converted first.
nb::object TreeConverter::enter(const ckpt::Child& child, bool is_in_key) {
  const ckpt::Value& value = *child.value;
  if (nb::object found = known(value, is_in_key); found.is_valid()) {
    return found;
  }
  Frame frame{
      .value = &value,
      .slot = child.slot,
      .is_in_key = is_in_key,
      .count = ckpt::child_count(value),
      .made = begin(value, is_in_key)};
  if (!is_in_key && value.as_tensor() == nullptr &&
      value.as_tuple() == nullptr) { // its parts may refer to it
    remember(value, is_in_key, frame.made, 1);
  }
  if (frame.count == 0) {
    return end(frame);
  }
  path_.push_back(std::move(frame));
  return {};
}

// What was made before, or above.
nb::object TreeConverter::known(const ckpt::Value& value, bool is_in_key) {
  const ckpt::Object* object = value.as_object();
  hashed_ = 1;
  if (object != nullptr && object->global == ckpt::kReferenceGlobal) {
    return referred(*object);
  }
  if (value.owners() < 2) {
    return {};
  }
  const auto& made = made_[is_other_in_key(value, is_in_key)];
  const auto found = made.find(value.address());
  if (found == made.end()) {
    return {};
  }
  hashed_ = found->second.hashed;
  return found->second.object;
}

// Errors: kUnsupported if it is around the tree that is converted, or a tuple
// or tensor, which is there only when all of it is.
nb::object TreeConverter::referred(const ckpt::Object& object) const {
  const auto levels = object.args->as_tuple()->items.at(0).as_int();
  const auto up = static_cast<std::uint64_t>(*levels) + 1;
  if (up > path_.size()) {
    refuse(
        "the value refers to one that holds it",
        "load() gives both, and so does root()");
  }
  const Frame& frame = path_[path_.size() - up];
  if (frame.value->as_tuple() != nullptr ||
      frame.value->as_tensor() != nullptr) {
    refuse(
        "a tuple or a tensor holds itself",
        "lockstep.open(path)[name] reads the other values");
  }
  return frame.made;
}

void TreeConverter::remember(
    const ckpt::Value& value,
    bool is_in_key,
    const nb::object& made,
    std::uint64_t hashed) {
  if (value.owners() > 1) {
    made_[is_other_in_key(value, is_in_key)][value.address()] = {made, hashed};
  }
}

// The object, without its parts.
nb::object TreeConverter::begin(const ckpt::Value& value, bool is_in_key) {
  const Kit& kit = Kit::get();
  switch (value.type()) {
    case ckpt::ValueType::kTensor:
      return array(*value.as_tensor());
    case ckpt::ValueType::kList:
    case ckpt::ValueType::kTuple: // until all parts are there
      return nb::list();
    case ckpt::ValueType::kSet:
      return owned(is_in_key ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
    case ckpt::ValueType::kDict: {
      const ckpt::Dict& dict = *value.as_dict();
      if (dict.kind == ckpt::Dict::Kind::kCounter) {
        return kit.counter();
      }
      const bool is_ordered = dict.kind == ckpt::Dict::Kind::kOrderedDict ||
                              !dict.attributes.empty();
      return is_ordered ? kit.ordered_dict() : nb::dict();
    }
    case ckpt::ValueType::kObject:
      return kit.object(text(value.as_object()->global));
    default:
      return value.visit(Leaf());
  }
}

// A part of the value at the end of the path.
void TreeConverter::deliver(ckpt::ChildSlot slot, nb::object made) {
  Frame& frame = path_.back();
  if (holds_key(frame, slot) && !frame.is_in_key) {
    // One of tuples of tuples ..., each reached twice, takes forever to hash.
    if (hashed_ > hash_steps_) {
      raise_python(
          {.code = ErrorCode::kUnsafe,
           .op = "python.load",
           .message = "the keys take too many steps to hash",
           .hint = "Limits::max_steps allows more",
           .path = options_->path,
           .detail = "E_LIMIT"});
    }
    hash_steps_ -= hashed_;
  }
  frame.hashed =
      hashed_ > ~frame.hashed ? ~std::uint64_t{0} : frame.hashed + hashed_;
  const bool is_object = frame.value->type() == ckpt::ValueType::kObject;
  switch (slot) {
    case ckpt::ChildSlot::kElement:
      check(PyList_Append(frame.made.ptr(), made.ptr()));
      return;
    case ckpt::ChildSlot::kMember:
      if (PySet_Add(frame.made.ptr(), made.ptr()) < 0) {
        refuse_key();
      }
      return;
    case ckpt::ChildSlot::kKey:
    case ckpt::ChildSlot::kAttributeKey:
    case ckpt::ChildSlot::kTensorAttributes:
      frame.key = std::move(made);
      return;
    case ckpt::ChildSlot::kItem:
      if (!is_object) {
        set_item(frame.made, frame.key, made);
      } else if (frame.value->as_object()->is_sequence) {
        frame.made.attr("items").attr("append")(made);
      } else {
        frame.made.attr("items").attr("append")(
            nb::make_tuple(frame.key, made));
      }
      return;
    case ckpt::ChildSlot::kAttribute:
      set_item(frame.made.attr("__dict__"), frame.key, made);
      return;
    case ckpt::ChildSlot::kArgs:
      frame.made.attr("args") = made;
      return;
    case ckpt::ChildSlot::kState:
      frame.made.attr("state") = made;
      frame.made.attr("has_state") = true;
      return;
    case ckpt::ChildSlot::kQuantizer:
      frame.quantizer = std::move(made);
      return;
  }
}

void TreeConverter::set_item(
    const nb::object& dict,
    const nb::object& key,
    const nb::object& value) const {
  if (PyObject_SetItem(dict.ptr(), key.ptr(), value.ptr()) < 0) {
    refuse_key();
  }
}

// The object with its parts.
nb::object TreeConverter::end(Frame& frame) {
  const ckpt::Value& value = *frame.value;
  const ckpt::Object* object = value.as_object();
  const ckpt::Dict* dict = value.as_dict();
  nb::object made = std::move(frame.made);
  if (dict != nullptr && nb::len(made) != dict->items.size()) {
    refuse("two keys of a dict are one key in Python", kShowHint);
  }
  if (value.as_tuple() != nullptr) {
    made = owned(PyList_AsTuple(made.ptr()));
  }
  if (const ckpt::Tensor* tensor = value.as_tensor();
      tensor != nullptr && (frame.is_in_key || !is_plain(*tensor))) {
    made = wrapped(frame, made);
  }
  if (object != nullptr && is_numpy_call(object->global) && !frame.is_in_key) {
    made = Kit::get().numpy_array(made);
  }
  hashed_ = object == nullptr ? frame.hashed : 1;
  remember(value, frame.is_in_key, made, hashed_);
  return made;
}

bool TreeConverter::is_plain(const ckpt::Tensor& tensor) const {
  return Kit::get().row(tensor.dtype, options_->use_ml_dtypes).is_exact &&
         ckpt::has_bytes(tensor) && tensor.quantizer == nullptr &&
         tensor.attributes == nullptr && tensor.class_name.empty();
}

nb::object TreeConverter::array(const ckpt::Tensor& tensor) {
  if (!ckpt::has_bytes(tensor)) {
    return nb::none();
  }
  return array_of(
      tensor,
      storages_->buffer_of(tensor.storage, options_->path),
      Kit::get().row(tensor.dtype, options_->use_ml_dtypes),
      options_->limits.max_expanded_bytes,
      options_->path);
}

nb::object TreeConverter::wrapped(const Frame& frame, const nb::object& array) {
  const ckpt::Tensor& tensor = *frame.value->as_tensor();
  return Kit::get().tensor(
      text(ckpt::dtype_info(tensor.dtype).name),
      int_tuple(tensor.sizes),
      array,
      frame.quantizer,
      frame.key,
      text(tensor.class_name));
}

// A key or an element that is, or holds, something that changes, or that is too
// deep.
void TreeConverter::refuse_key() const {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
      PyErr_ExceptionMatches(PyExc_RecursionError) == 0) {
    throw nb::python_error();
  }
  PyErr_Clear();
  refuse(
      "a key of a dict or an element of a set has no hash in Python; expected "
      "text, numbers, tuples of them, tensors",
      kShowHint);
}

void TreeConverter::refuse(const char* message, const char* hint) const {
  raise_python(
      {.code = ErrorCode::kUnsupported,
       .op = "python.load",
       .message = message,
       .hint = hint,
       .path = options_->path});
}

} // namespace lockstep::python
