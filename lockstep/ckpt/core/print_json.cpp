// SPDX-License-Identifier: BSD-3-Clause
//
// The JSON half of print.h.
#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::ckpt {
namespace {

class JsonMaker {
 public:
  Result<Json> make(const Value& value) {
    // A shared text is copied each time it is reached.
    if (left_-- == 0 || !spend(text_bytes(value))) {
      return too_much();
    }
    const bool has_parts = value.is_container() || value.as_tensor() != nullptr;
    const bool is_again = has_parts && value.owners() > 1 &&
                          !seen_.insert(value.address()).second;
    again_ += is_again ? 1 : 0;
    if (again_ != 0 && left_again_-- == 0) {
      return too_much();
    }
    auto json = make_parts(value);
    again_ -= is_again ? 1 : 0;
    return json;
  }

 private:
  Result<Json> make_parts(const Value& value) {
    if (const Tensor* tensor = value.as_tensor()) {
      return Json::object().set("tensor", tensor_json(*tensor));
    }
    if (const Dict* dict = value.as_dict()) {
      return items(dict->items);
    }
    if (const std::vector<Value>* values = value.elements()) {
      return elements(*values);
    }
    if (const Set* set = value.as_set()) {
      return elements(set->items);
    }
    if (const Object* object = value.as_object()) {
      return make_object(*object);
    }
    return scalar(value);
  }

  static Error too_much() {
    return {
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.show",
        .message = "value has too many parts to be printed",
        .hint = "name a key below it",
        .detail = "E_LIMIT"};
  }

  // Most bytes of text that the node itself, without children, prints.
  static std::uint64_t text_bytes(const Value& value) {
    if (const std::string* text = value.as_string()) {
      return text->size();
    }
    if (const Bytes* bytes = value.as_bytes()) {
      return 4 * bytes->data.size(); // \xNN
    }
    if (const BigInt* integer = value.as_big_int()) {
      return 3 * integer->bytes.size();
    }
    if (const Object* object = value.as_object()) {
      return object->global.size();
    }
    if (const Tensor* tensor = value.as_tensor()) {
      return tensor->storage->key.size() + tensor->storage->location.size();
    }
    return 0;
  }

  bool spend(std::uint64_t bytes) {
    if (bytes > left_bytes_) {
      return false;
    }
    left_bytes_ -= bytes;
    return true;
  }

  static Json scalar(const Value& value) {
    if (const bool* flag = value.as_bool()) {
      return *flag;
    }
    if (const std::int64_t* number = value.as_int()) {
      return *number;
    }
    if (value.type() == Value::Type::kFloat) {
      return *value.as_float();
    }
    if (const std::string* text = value.as_string()) {
      return *text;
    }
    if (value.is_none()) {
      return {};
    }
    return scalar_text(value, std::numeric_limits<std::uint32_t>::max());
  }

  Result<Json> elements(const std::vector<Value>& values) {
    Json array = Json::array();
    for (const Value& value : values) {
      LOCKSTEP_ASSIGN(Json element, make(value));
      array.push(std::move(element));
    }
    return array;
  }

  Result<Json> items(const std::vector<Item>& items) {
    const bool all_text = std::ranges::all_of(items, [](const Item& item) {
      return item.first.as_string() != nullptr;
    });
    Json result = all_text ? Json::object() : Json::array();
    for (const auto& [key, value] : items) {
      LOCKSTEP_ASSIGN(Json json, make(value));
      if (all_text && !spend(text_bytes(key))) {
        return too_much();
      }
      if (all_text) {
        result.set(*key.as_string(), std::move(json));
        continue;
      }
      LOCKSTEP_ASSIGN(Json name, make(key));
      result.push(Json::array().push(std::move(name)).push(std::move(json)));
    }
    return result;
  }

  Result<Json> make_object(const Object& object) {
    Json result = Json::object();
    result.set("global", object.global);
    for (const auto& [name, part] :
         {std::pair{"args", object.args}, {"state", object.state}}) {
      if (part != nullptr) {
        LOCKSTEP_ASSIGN(Json json, make(*part));
        result.set(name, std::move(json));
      }
    }
    if (!object.items.empty()) {
      LOCKSTEP_ASSIGN(Json json, items(object.items));
      result.set("items", std::move(json));
    }
    return result;
  }

  std::uint64_t left_ = 1'000'000;
  // Nodes of values that were printed before: a tensor takes a kilobyte.
  std::uint64_t left_again_ = 1 << 16;
  std::uint64_t again_ = 0;
  std::unordered_set<const void*> seen_;
  std::uint64_t left_bytes_ = 64 << 20;
};

} // namespace

Json tensor_json(const Tensor& tensor) {
  Json row = Json::object();
  row.set("dtype", dtype_info(tensor.dtype).name)
      .set("shape", Json::array(tensor.sizes))
      .set("stride", Json::array(tensor.strides))
      .set("offset", tensor.offset)
      .set("storage", tensor.storage->key)
      .set("location", tensor.storage->location)
      .set("requires_grad", tensor.requires_grad)
      .set("is_parameter", tensor.is_parameter);
  if (const std::string text = quantizer_text(tensor); !text.empty()) {
    row.set("quantizer", text);
  }
  if (!tensor.class_name.empty()) {
    row.set("class", tensor.class_name);
  }
  if (tensor.is_conj) {
    row.set("is_conj", true);
  }
  if (tensor.is_neg) {
    row.set("is_neg", true);
  }
  return row;
}

Result<Json> to_json(const Value& value) {
  return JsonMaker().make(value);
}

} // namespace lockstep::ckpt
