// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/storage_id.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

class NoBytes final : public StorageSource {
 public:
  Result<ByteSpan> load() override {
    return ByteSpan();
  }
};

Error storage_conflict(const StorageId& id, const Storage& before) {
  return corrupt_file(
      "E_STORAGE_CONFLICT",
      format(
          "storage '{}' is {} of {} bytes here, but {} of {} before",
          escape(id.key),
          escape(id.class_name),
          id.nbytes,
          escape(before.class_name),
          before.nbytes));
}

} // namespace

Result<StorageId> read_storage_id(const Value& id, std::size_t max_parts) {
  const Tuple* parts = id.as_tuple();
  const std::string* tag =
      parts == nullptr || parts->items.size() < kStorageIdParts
          ? nullptr
          : parts->items[0].as_string();
  if (tag == nullptr || *tag != "storage") {
    Error error = corrupt_file(
        "E_TYPE",
        "persistent id is not a tuple ('storage', class, key, location, "
        "numel)");
    if (id.as_string() != nullptr) {
      error.hint =
          "pickle protocol 0 loses it, PyTorch cannot load the file either: "
          "save it again with protocol 2";
    }
    return error;
  }
  if (parts->items.size() > max_parts) {
    return corrupt_file(
        "E_TYPE",
        format(
            "a storage's id has {} parts; expected {}",
            parts->items.size(),
            max_parts));
  }
  const Object* type = parts->items[1].as_object();
  const std::string* key = parts->items[2].as_string();
  const std::string* location = parts->items[3].as_string();
  const std::int64_t* numel = parts->items[4].as_int();
  if (type == nullptr || key == nullptr || location == nullptr ||
      numel == nullptr || *numel < 0) {
    return corrupt_file("E_TYPE", "part of a storage's id has the wrong type");
  }
  const auto dtype = storage_class_dtype(type->global);
  if (!dtype) {
    return corrupt_file(
        "E_TYPE",
        format("'{}' is not a storage class", escape(type->global)));
  }
  StorageId result{
      .class_name = type->global,
      .dtype = *dtype,
      .key = *key,
      .location = *location};
  const std::uint64_t size = dtype_info(*dtype).size;
  if (__builtin_mul_overflow(
          static_cast<std::uint64_t>(*numel),
          size,
          &result.nbytes) ||
      !std::in_range<std::int64_t>(result.nbytes)) {
    return corrupt_file(
        "E_OVERFLOW",
        "size of a storage does not fit in 64 bits");
  }
  return result;
}

std::shared_ptr<Storage> make_storage(const StorageId& id, const Value& value) {
  const Tuple& parts = *value.as_tuple();
  auto storage = std::make_shared<Storage>();
  storage->nbytes = id.nbytes;
  storage->location = id.location;
  storage->key = id.key;
  storage->dtype = id.dtype;
  storage->class_name = id.class_name;
  storage->tag_text = parts.items[0].shared_string();
  storage->key_text = parts.items[2].shared_string();
  storage->location_text = parts.items[3].shared_string();
  return storage;
}

Result<std::shared_ptr<Storage>> named_again(
    const StorageId& id,
    const Value& value,
    const std::shared_ptr<Storage>& before) {
  if (before->nbytes != id.nbytes) {
    return storage_conflict(id, *before);
  }
  if (before->class_name == id.class_name) {
    return before;
  }
  if (id.nbytes != 0) {
    return storage_conflict(id, *before);
  }
  auto storage = make_storage(id, value);
  storage->source = std::make_shared<NoBytes>();
  return storage;
}

std::shared_ptr<Storage> empty_storage(DType dtype) {
  auto storage = std::make_shared<Storage>(Storage{.dtype = dtype});
  storage->source = std::make_shared<NoBytes>();
  return storage;
}

} // namespace lockstep::ckpt
