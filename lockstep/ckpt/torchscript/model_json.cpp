// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/torchscript/model_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/pickle/pickle_machine.h"
#include "lockstep/ckpt/pickle/rebuild_tensor.h"
#include "lockstep/ckpt/pytorch/record_source.h"

namespace lockstep::ckpt {
namespace {

using nlohmann::json;

// Names of caffe2's TensorProto.
constexpr std::array<std::pair<std::string_view, DType>, 10> kJsonTypes{{
    {"FLOAT", DType::kFloat32},
    {"DOUBLE", DType::kFloat64},
    {"FLOAT16", DType::kFloat16},
    {"INT64", DType::kInt64},
    {"INT32", DType::kInt32},
    {"INT16", DType::kInt16},
    {"INT8", DType::kInt8},
    {"UINT8", DType::kUInt8},
    {"BYTE", DType::kUInt8},
    {"BOOL", DType::kBool},
}};

Error bad_model(std::string message) {
  return corrupt_pickle("E_MODEL_JSON", "model.json: " + std::move(message));
}

const json* member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

std::string member_text(const json& object, const char* name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>()
                                                : "";
}

// 64-bit integers are texts in this JSON; an absent one is 0.
std::optional<std::int64_t> integer_of(const json& value) {
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (!value.is_string()) {
    return std::nullopt;
  }
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number =
      error == std::errc{} && end == text.data() + text.size();
  return is_number ? std::optional<std::int64_t>(number) : std::nullopt;
}

Result<std::int64_t> integer_in(const json& object, const char* name) {
  const json* found = member(object, name);
  if (found == nullptr) {
    return std::int64_t{0};
  }
  const auto number = integer_of(*found);
  return number ? Result<std::int64_t>(*number)
                : bad_model(format("'{}' is no integer", name));
}

Result<std::vector<std::int64_t>> integers_in(
    const json& object,
    const char* name) {
  std::vector<std::int64_t> numbers;
  const json* found = member(object, name);
  if (found == nullptr) {
    return numbers;
  }
  for (const json& item : *found) {
    const auto number = integer_of(item);
    if (!number) {
      return bad_model(format("'{}' holds no integers", name));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

bool flag_in(const json& object, const char* name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

class ModelReader {
 public:
  ModelReader(std::shared_ptr<const ZipReader> zip, const LoadOptions& options)
      : zip_(std::move(zip)), options_(options) {}

  Result<ModelJson> run() {
    LOCKSTEP_ASSIGN(const std::string text, record_text(kModelJson));
    const json model = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const json* main = member(model, "mainModule");
    if (model.is_discarded() || main == nullptr) {
      return bad_model("is no JSON with a 'mainModule'");
    }
    if (const json* tensors = member(model, "tensors")) {
      for (const json& tensor : *tensors) {
        LOCKSTEP_TRY(add_tensor(tensor));
      }
    }
    LOCKSTEP_TRY(read_attributes());
    LOCKSTEP_ASSIGN(result_.root, module(*main, 1));
    return std::move(result_);
  }

 private:
  Result<std::string> record_text(std::string_view name) {
    const ZipRecord* record = zip_->find(name);
    if (record == nullptr) {
      return std::string();
    }
    if (record->size > options_.limits.max_pickle_bytes) {
      return pickle_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("record '{}' has {} bytes", name, record->size));
    }
    if (options_.check_crc) {
      LOCKSTEP_TRY(zip_->check_crc(*record));
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(const ByteSpan bytes, zip_->read(*record, scratch));
    return std::string(as_text(bytes));
  }

  Status add_tensor(const json& entry) {
    const std::string type = member_text(entry, "dataType");
    const auto* row = std::ranges::find(
        kJsonTypes,
        std::string_view(type),
        &std::pair<std::string_view, DType>::first);
    const json* data = member(entry, "data");
    if (row == kJsonTypes.end() || data == nullptr) {
      return bad_model(
          format("tensor {} has the type '{}'", tensors_.size(), escape(type)));
    }
    Tensor tensor{.dtype = row->second};
    LOCKSTEP_ASSIGN(tensor.sizes, integers_in(entry, "dims"));
    LOCKSTEP_ASSIGN(tensor.strides, integers_in(entry, "strides"));
    LOCKSTEP_ASSIGN(tensor.offset, integer_in(entry, "offset"));
    tensor.requires_grad = flag_in(entry, "requiresGrad");
    LOCKSTEP_ASSIGN(
        tensor.storage,
        storage(
            member_text(*data, "key"),
            row->second,
            member_text(entry, "device")));
    LOCKSTEP_TRY(check_view(tensor));
    tensors_.emplace_back(std::move(tensor));
    return {};
  }

  Result<std::shared_ptr<Storage>>
  storage(const std::string& key, DType dtype, const std::string& device) {
    auto& known = storages_[key];
    if (known != nullptr) {
      return known;
    }
    const ZipRecord* record = zip_->find(key);
    if (record == nullptr) {
      return corrupt_pickle(
          "E_NO_STORAGE",
          format(
              "the bytes of tensor {} are missing; expected the record '{}'",
              tensors_.size(),
              escape(key)));
    }
    known = std::make_shared<Storage>(Storage{
        .nbytes = record->size,
        .location = device.empty() ? "cpu" : device,
        .key = key,
        .dtype = dtype});
    known->source = record_source(zip_, *record, options_.check_crc);
    result_.storages.push_back(known);
    return known;
  }

  Status read_attributes() {
    LOCKSTEP_ASSIGN(const std::string text, record_text("attributes.pkl"));
    if (text.empty()) {
      return {};
    }
    LOCKSTEP_ASSIGN(
        PickleResult pickle,
        read_pickle(as_byte_span(text), nullptr, options_.limits));
    result_.globals = std::move(pickle.globals);
    const Tuple* tuple = pickle.root.as_tuple();
    const List* list = pickle.root.as_list();
    if (tuple != nullptr || list != nullptr) {
      attributes_ = tuple != nullptr ? tuple->items : list->items;
    }
    return {};
  }

  Result<Value> module(const json& entry, std::uint64_t depth) {
    if (depth > options_.limits.max_depth) {
      return pickle_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("modules nest deeper than {} levels", depth - 1));
    }
    Dict state;
    for (const json& parameter : list_in(entry, "parameters")) {
      LOCKSTEP_ASSIGN(const std::int64_t id, integer_in(parameter, "tensorId"));
      LOCKSTEP_ASSIGN(Value tensor, tensor_at(id));
      state.items.emplace_back(
          member_text(parameter, "name"),
          std::move(tensor));
    }
    for (const json& attribute : list_in(entry, "attributes")) {
      LOCKSTEP_ASSIGN(Value value, attribute_value(attribute));
      state.items.emplace_back(
          member_text(attribute, "name"),
          std::move(value));
    }
    for (const json& child : list_in(entry, "submodules")) {
      LOCKSTEP_ASSIGN(Value value, module(child, depth + 1));
      state.items.emplace_back(member_text(child, "name"), std::move(value));
    }
    return Value(Object{
        .global = "__torch__.Module",
        .args = std::make_shared<Value>(Tuple{}),
        .state = std::make_shared<Value>(std::move(state))});
  }

  static const json& list_in(const json& entry, const char* name) {
    static const json none = json::array();
    const json* found = member(entry, name);
    return found != nullptr && found->is_array() ? *found : none;
  }

  Result<Value> tensor_at(std::int64_t id) const {
    if (id < 0 || std::cmp_greater_equal(id, tensors_.size())) {
      return bad_model(format("tensor {} of {}", id, tensors_.size()));
    }
    return tensors_[static_cast<std::size_t>(id)];
  }

  Result<Value> attribute_value(const json& attribute) const {
    LOCKSTEP_ASSIGN(const std::int64_t id, integer_in(attribute, "id"));
    if (id < 0 || std::cmp_greater_equal(id, attributes_.size())) {
      return bad_model(format("attribute {} of {}", id, attributes_.size()));
    }
    const Value& value = attributes_[static_cast<std::size_t>(id)];
    const Object* call = value.as_object();
    const bool is_reference =
        call != nullptr && call->args != nullptr &&
        call->global == "torch.jit._pickle.build_tensor_from_id";
    const Tuple* args = is_reference ? call->args->as_tuple() : nullptr;
    if (args == nullptr || args->items.size() != 1 ||
        args->items[0].as_int() == nullptr) {
      return value;
    }
    return tensor_at(*args->items[0].as_int());
  }

  std::shared_ptr<const ZipReader> zip_;
  LoadOptions options_;
  std::vector<Value> tensors_;
  std::vector<Value> attributes_;
  std::map<std::string, std::shared_ptr<Storage>> storages_;
  ModelJson result_;
};

} // namespace

Result<ModelJson> read_model_json(
    const std::shared_ptr<const ZipReader>& zip,
    const LoadOptions& options) {
  return ModelReader(zip, options).run();
}

} // namespace lockstep::ckpt
