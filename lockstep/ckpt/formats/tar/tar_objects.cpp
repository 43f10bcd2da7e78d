// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/tar/tar_objects.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_at(std::string message, std::uint64_t offset) {
  return corrupt_file("E_TAR", std::move(message), {}, offset);
}

// The elements of a tuple of `count`, null for anything else.
const std::vector<Value>* tuple_of(const Value& value, std::size_t count) {
  const Tuple* tuple = value.as_tuple();
  return tuple == nullptr || tuple->items.size() != count ? nullptr
                                                          : &tuple->items;
}

} // namespace

Result<Value> TarObjects::next(PickleStream& stream) {
  LOCKSTEP_ASSIGN(PickleResult pickle, stream.next(nullptr));
  std::ranges::move(pickle.globals, std::back_inserter(globals));
  return std::move(pickle.root);
}

Result<std::int64_t> TarObjects::next_count(PickleStream& stream) {
  const std::uint64_t begin = stream.position();
  LOCKSTEP_ASSIGN(const Value value, next(stream));
  const std::int64_t* count = value.as_int();
  // Every item takes some bytes, so a lying count ends at the end of the file.
  if (count == nullptr || *count < 0) {
    return bad_at("expected the number of items", begin);
  }
  return *count;
}

Status TarObjects::add(std::int64_t key, Value value) {
  if (!values_.emplace(key, std::move(value)).second) {
    return corrupt_file("E_TAR", format("number {} appears twice", key));
  }
  return {};
}

Status TarObjects::read_storages(const std::shared_ptr<ByteSource>& member) {
  PickleStream stream(member, 0, limits_);
  LOCKSTEP_ASSIGN(const std::int64_t count, next_count(stream));
  for (std::int64_t i = 0; i < count; ++i) {
    LOCKSTEP_TRY(read_storage(stream, member));
  }
  return read_views(stream);
}

Status TarObjects::read_storage(
    PickleStream& stream,
    const std::shared_ptr<ByteSource>& member) {
  const std::uint64_t begin = stream.position();
  LOCKSTEP_ASSIGN(const Value row, next(stream));
  const auto* parts = tuple_of(row, 3);
  const std::int64_t* key = parts ? (*parts)[0].as_int() : nullptr;
  const std::string* location = parts ? (*parts)[1].as_string() : nullptr;
  const Object* type = parts ? (*parts)[2].as_object() : nullptr;
  const auto dtype = type == nullptr || !is_bare_global(*type)
                         ? std::nullopt
                         : storage_class_dtype(type->global);
  if (key == nullptr || location == nullptr || !dtype) {
    return bad_at("storage is not a tuple (number, location, class)", begin);
  }
  LOCKSTEP_ASSIGN(const std::int64_t numel, stream.next_i64());
  auto storage = std::make_shared<Storage>(
      Storage{.location = *location, .key = std::to_string(*key)});
  storage->dtype = *dtype;
  storage->class_name = type->global;
  if (numel < 0 || __builtin_mul_overflow(
                       static_cast<std::uint64_t>(numel),
                       dtype_info(*dtype).size,
                       &storage->nbytes)) {
    return corrupt_file(
        "E_OVERFLOW",
        format("storage {} of {} elements", *key, numel));
  }
  if (storage->nbytes > stream.remaining()) {
    return bad_at(
        format(
            "storage {} is truncated; expected {} bytes, got {}",
            *key,
            storage->nbytes,
            stream.remaining()),
        begin);
  }
  storage->source =
      make_range_storage(member, stream.position(), storage->nbytes);
  LOCKSTEP_TRY(stream.skip(storage->nbytes));
  LOCKSTEP_TRY(add(*key, storage));
  numbered_.emplace(*key, storage);
  storages.push_back(std::move(storage));
  return {};
}

Status TarObjects::read_views(PickleStream& stream) {
  const std::uint64_t begin = stream.position();
  LOCKSTEP_ASSIGN(const Value rows, next(stream));
  const List* list = rows.as_list();
  if (list == nullptr) {
    return bad_at("expected the list of views of storages", begin);
  }
  for (const Value& row : list->items) {
    LOCKSTEP_TRY(read_view(row));
  }
  return {};
}

Status TarObjects::read_view(const Value& row) {
  const auto* parts = tuple_of(row, 4);
  const std::int64_t* target = parts ? (*parts)[0].as_int() : nullptr;
  const std::int64_t* root = parts ? (*parts)[1].as_int() : nullptr;
  const std::int64_t* offset = parts ? (*parts)[2].as_int() : nullptr;
  const std::int64_t* numel = parts ? (*parts)[3].as_int() : nullptr;
  if (target == nullptr || root == nullptr || offset == nullptr ||
      numel == nullptr) {
    return corrupt_file(
        "E_TAR",
        "view of a storage is not a tuple of four integers");
  }
  const auto found = numbered_.find(*root);
  if (found == numbered_.end()) {
    return corrupt_file(
        "E_TAR",
        format("view uses storage {}, which is missing", *root));
  }
  LOCKSTEP_ASSIGN(auto view, views_.make(found->second, *offset, *numel));
  LOCKSTEP_TRY(add(*target, view));
  numbered_.emplace(*target, std::move(view));
  return {};
}

Status TarObjects::read_tensors(const std::shared_ptr<ByteSource>& member) {
  PickleStream stream(member, 0, limits_);
  LOCKSTEP_ASSIGN(const std::int64_t count, next_count(stream));
  for (std::int64_t i = 0; i < count; ++i) {
    LOCKSTEP_TRY(read_tensor(stream));
  }
  return {};
}

Status TarObjects::read_tensor(PickleStream& stream) {
  const std::uint64_t begin = stream.position();
  LOCKSTEP_ASSIGN(const Value row, next(stream));
  const auto* parts = tuple_of(row, 3);
  const std::int64_t* key = parts ? (*parts)[0].as_int() : nullptr;
  const std::int64_t* storage = parts ? (*parts)[1].as_int() : nullptr;
  const bool has_none = parts != nullptr && (*parts)[1].is_none();
  if (key == nullptr || (storage == nullptr && !has_none)) {
    return bad_at("tensor is not a tuple (number, storage, class)", begin);
  }
  LOCKSTEP_ASSIGN(const std::int32_t rank, stream.next_i32());
  LOCKSTEP_TRY(stream.skip(4)); // the rank once took 8 bytes
  if (rank < 0 || static_cast<std::size_t>(rank) > kMaxDimensions) {
    return corrupt_file(
        "E_RANK",
        format(
            "tensor of {} dimensions; expected at most {}",
            rank,
            kMaxDimensions));
  }
  Tensor tensor;
  LOCKSTEP_ASSIGN(tensor.sizes, next_integers(stream, rank));
  LOCKSTEP_ASSIGN(tensor.strides, next_integers(stream, rank));
  LOCKSTEP_ASSIGN(tensor.offset, stream.next_i64());
  if (has_none) {
    LOCKSTEP_ASSIGN(tensor, empty_tensor((*parts)[2]));
    return add(*key, std::move(tensor));
  }
  const auto found = numbered_.find(*storage);
  if (found == numbered_.end()) {
    return bad_at(
        format("tensor uses storage {}, which is missing", *storage),
        begin);
  }
  tensor.storage = found->second;
  tensor.dtype = tensor.storage->dtype;
  LOCKSTEP_TRY(check_view(tensor));
  views_.fold(tensor);
  return add(*key, std::move(tensor));
}

Result<std::vector<std::int64_t>> TarObjects::next_integers(
    PickleStream& stream,
    std::int64_t count) {
  std::vector<std::int64_t> integers(static_cast<std::size_t>(count));
  for (std::int64_t& integer : integers) {
    LOCKSTEP_ASSIGN(integer, stream.next_i64());
  }
  return integers;
}

// A tensor without a storage had no elements; its class tells the dtype.
Result<Tensor> TarObjects::empty_tensor(const Value& type) const {
  constexpr std::string_view kSuffix = "Tensor";
  const Object* object = type.as_object();
  std::string name = object == nullptr ? "" : object->global;
  if (name.ends_with(kSuffix)) {
    name.replace(name.size() - kSuffix.size(), kSuffix.size(), "Storage");
  }
  const auto dtype = storage_class_dtype(name);
  if (!dtype) {
    return corrupt_file(
        "E_TAR",
        format("'{}' is not a tensor class", escape(name)));
  }
  auto storage = std::make_shared<Storage>();
  storage->dtype = *dtype;
  storage->class_name = std::move(name);
  storage->source = make_range_storage(make_source(ByteSpan()), 0, 0);
  return Tensor{
      .dtype = *dtype,
      .sizes = {0},
      .strides = {1},
      .storage = std::move(storage)};
}

Result<Value> TarObjects::resolve(const Value& id) {
  if (const auto* parts = tuple_of(id, 3)) {
    const Object* type = (*parts)[0].as_object();
    if (type == nullptr) {
      return corrupt_file(
          "E_TYPE",
          "persistent id is not a tuple (class, file, source)");
    }
    class_sources.push_back(
        {.name = class_name_of(*type),
         .file = std::string((*parts)[1].text()),
         .text = std::string((*parts)[2].text())});
    return (*parts)[0];
  }
  const std::string* text = id.as_string();
  if (text == nullptr) {
    return corrupt_file(
        "E_TYPE",
        "persistent id is neither a number nor a class");
  }
  const auto key = parse_number<std::int64_t>(*text);
  const auto found = key ? values_.find(*key) : values_.end();
  if (found == values_.end()) {
    return corrupt_file(
        "E_TAR",
        format("no tensor or storage has the number '{}'", escape(*text)));
  }
  return found->second;
}

} // namespace lockstep::ckpt::internal
