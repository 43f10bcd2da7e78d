// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/model_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/torchscript/json_model.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/zip/record_source.h"

namespace lockstep::ckpt {
namespace {

using internal::JsonMember;
using internal::JsonModel;
using internal::JsonModule;
using internal::JsonTensor;

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
  return corrupt_file("E_MODEL_JSON", "model.json: " + std::move(message));
}

class ModelReader {
 public:
  ModelReader(std::shared_ptr<const ZipReader> zip, const LoadOptions& options)
      : zip_(std::move(zip)), options_(options) {}

  Result<ModelJson> run() {
    LOCKSTEP_ASSIGN(const std::string text, text_of(kModelJson));
    LOCKSTEP_ASSIGN(
        const JsonModel model,
        internal::parse_json_model(text, options_.limits));
    for (const JsonTensor& tensor : model.tensors) {
      LOCKSTEP_TRY(add_tensor(tensor));
    }
    LOCKSTEP_TRY(read_attributes());
    LOCKSTEP_ASSIGN(result_.root, module(model.main));
    return std::move(result_);
  }

 private:
  // Empty without such a record.
  Result<std::string> text_of(std::string_view name) {
    const ZipRecord* record = zip_->find(name);
    return record == nullptr ? std::string()
                             : record_text(*zip_, *record, options_);
  }

  Status add_tensor(const JsonTensor& entry) {
    const auto* row = std::ranges::find(
        kJsonTypes,
        std::string_view(entry.type),
        &std::pair<std::string_view, DType>::first);
    if (row == kJsonTypes.end()) {
      return bad_model(format(
          "tensor {} has the type '{}'",
          tensors_.size(),
          escape(entry.type)));
    }
    Tensor tensor{
        .dtype = row->second,
        .sizes = entry.sizes,
        .strides = entry.strides,
        .offset = entry.offset,
        .requires_grad = entry.requires_grad};
    LOCKSTEP_ASSIGN(
        tensor.storage,
        storage(entry.key, row->second, entry.device));
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
      return corrupt_file(
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
    known->source =
        record_source(zip_, *record, record->size, options_.checks_tensors());
    result_.storages.push_back(known);
    return known;
  }

  Status read_attributes() {
    LOCKSTEP_ASSIGN(const std::string text, text_of("attributes.pkl"));
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

  Result<Value> module(const JsonModule& entry) {
    Dict state;
    for (const JsonMember& parameter : entry.parameters) {
      LOCKSTEP_ASSIGN(Value tensor, tensor_at(parameter.id));
      state.items.emplace_back(parameter.name, std::move(tensor));
    }
    for (const JsonMember& attribute : entry.attributes) {
      LOCKSTEP_ASSIGN(Value value, attribute_value(attribute.id));
      state.items.emplace_back(attribute.name, std::move(value));
    }
    for (const JsonModule& child : entry.submodules) {
      LOCKSTEP_ASSIGN(Value value, module(child));
      state.items.emplace_back(child.name, std::move(value));
    }
    return Value(Object{
        .global = "__torch__.Module",
        .args = std::make_shared<Value>(Tuple{}),
        .state = std::make_shared<Value>(std::move(state))});
  }

  Result<Value> tensor_at(std::int64_t id) const {
    if (id < 0 || std::cmp_greater_equal(id, tensors_.size())) {
      return bad_model(format("tensor {} of {}", id, tensors_.size()));
    }
    return tensors_[static_cast<std::size_t>(id)];
  }

  Result<Value> attribute_value(std::int64_t id) const {
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
