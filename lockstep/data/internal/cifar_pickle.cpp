// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/cifar_pickle.h"

#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::internal {
namespace {

using ckpt::Value;

[[noreturn]] void not_cifar(std::string message, const std::string& path) {
  raise(
      {.code = ErrorCode::kCorrupt,
       .op = "data.open",
       .message = std::move(message),
       .hint = "expected a batch as CIFAR's authors pickled it",
       .path = path,
       .detail = "E_DATA_FILE"});
}

Value read_dict(FileSystem& fs, const std::string& path) {
  const std::shared_ptr<FileMapping> file = fs.map(path).value();
  Result<ckpt::PickleResult> result =
      ckpt::read_pickle(file->bytes(), /*handler=*/nullptr);
  if (!result) {
    Error error = std::move(result).error();
    error.path = path;
    raise(std::move(error));
  }
  if (result->root.as_dict() == nullptr) {
    not_cifar("the pickle is no dict", path);
  }
  return std::move(result->root);
}

// Text, or bytes: Python 2 wrote keys and pixels as either.
std::optional<std::string_view> characters(const Value& value) {
  if (const std::string* text = value.as_string()) {
    return *text;
  }
  if (const ckpt::Bytes* bytes = value.as_bytes()) {
    return bytes->data;
  }
  return std::nullopt;
}

const Value* entry(const Value& dict, std::string_view key) {
  for (const auto& [name, value] : dict.as_dict()->items) {
    if (characters(name) == key) {
      return &value;
    }
  }
  return nullptr;
}

// Item `index` of a tuple; null if there is none.
const Value* item(const Value* tuple, std::size_t index) {
  const std::vector<Value>* items =
      tuple == nullptr
          ? nullptr
          : static_cast<const std::vector<Value>*>(tuple->elements());
  return items == nullptr || index >= items->size() ? nullptr
                                                    : &(*items)[index];
}

// `numpy.dtype('u1')`.
bool is_bytes_type(const Value* type) {
  const ckpt::Object* object =
      type == nullptr ? nullptr
                      : static_cast<const ckpt::Object*>(type->as_object());
  const Value* code = object == nullptr ? nullptr : item(object->args.get(), 0);
  return code != nullptr && object->global == "numpy.dtype" &&
         characters(*code) == "u1";
}

// The elements of a pickled array of bytes, row-major: what its __setstate__
// takes is (version, shape, dtype, is_fortran, elements).
std::string_view array_bytes(const Value& value, const std::string& path) {
  const ckpt::Object* array = value.as_object();
  if (array == nullptr || !array->global.ends_with("multiarray._reconstruct") ||
      !is_bytes_type(item(array->state.get(), 2))) {
    not_cifar("'data' is no array of bytes", path);
  }
  const Value* is_fortran = item(array->state.get(), 3);
  const Value* elements = item(array->state.get(), 4);
  const auto bytes = elements == nullptr ? std::nullopt : characters(*elements);
  if (!bytes || (is_fortran->as_bool() != nullptr && *is_fortran->as_bool())) {
    not_cifar("'data' is no row-major array of bytes", path);
  }
  return *bytes;
}

} // namespace

CifarBatch read_cifar_pickle(
    FileSystem& fs,
    const std::string& path,
    std::string_view label_key,
    std::int64_t pixels) {
  const Value dict = read_dict(fs, path);
  const Value* data = entry(dict, "data");
  const Value* labels = entry(dict, label_key);
  if (data == nullptr || labels == nullptr || labels->elements() == nullptr) {
    not_cifar(
        format("the dict has no 'data' and list of '{}'", label_key),
        path);
  }
  const std::string_view bytes = array_bytes(*data, path);
  CifarBatch batch;
  for (const Value& label : *labels->elements()) {
    if (label.as_int() == nullptr) {
      not_cifar(
          format("label {} is no whole number", batch.labels.size()),
          path);
    }
    batch.labels.push_back(*label.as_int());
  }
  if (bytes.size() != batch.labels.size() * static_cast<std::size_t>(pixels)) {
    not_cifar(
        format(
            "'data' has {} bytes; expected {} for each of {} labels",
            bytes.size(),
            pixels,
            batch.labels.size()),
        path);
  }
  batch.pixels = std::make_shared<const std::string>(bytes);
  return batch;
}

std::vector<std::string> read_cifar_names(
    FileSystem& fs,
    const std::string& path,
    std::string_view key) {
  const Value dict = read_dict(fs, path);
  const Value* list = entry(dict, key);
  if (list == nullptr || list->elements() == nullptr) {
    not_cifar(format("the dict has no list of '{}'", key), path);
  }
  std::vector<std::string> names;
  for (const Value& name : *list->elements()) {
    const auto text = characters(name);
    if (!text) {
      not_cifar("a name of a class is no text", path);
    }
    names.emplace_back(*text);
  }
  return names;
}

} // namespace lockstep::internal
