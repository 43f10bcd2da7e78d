// SPDX-License-Identifier: BSD-3-Clause
//
// What a value that may be changed gives, and a temporary one.
#include <utility>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

Ref<Storage> Value::as_storage() & noexcept {
  return as<Storage>(Type::kStorage);
}
Ref<Tensor> Value::as_tensor() & noexcept {
  return as<Tensor>(Type::kTensor);
}
Ref<List> Value::as_list() & noexcept {
  return as<List>(Type::kList);
}
Ref<Tuple> Value::as_tuple() & noexcept {
  return as<Tuple>(Type::kTuple);
}
Ref<Set> Value::as_set() & noexcept {
  return as<Set>(Type::kSet);
}
Ref<Dict> Value::as_dict() & noexcept {
  return as<Dict>(Type::kDict);
}
Ref<Object> Value::as_object() & noexcept {
  return as<Object>(Type::kObject);
}

Copy<bool> Value::as_bool() const&& noexcept {
  return copy<bool>(as_bool(), Type::kBool);
}
Copy<std::int64_t> Value::as_int() const&& noexcept {
  return copy<std::int64_t>(as_int(), Type::kInt);
}
Copy<DTypeValue> Value::as_dtype() const&& noexcept {
  return copy<DTypeValue>(as_dtype(), Type::kDType);
}
Copy<BigInt> Value::as_big_int() const&& {
  return copy<BigInt>(as_big_int(), Type::kBigInt);
}
Copy<std::string> Value::as_string() const&& {
  return copy<std::string>(as_string(), Type::kString);
}
Copy<Bytes> Value::as_bytes() const&& {
  return copy<Bytes>(as_bytes(), Type::kBytes);
}
Copy<Complex> Value::as_complex() const&& {
  return copy<Complex>(as_complex(), Type::kComplex);
}
Copy<Size> Value::as_size() const&& {
  return copy<Size>(as_size(), Type::kSize);
}
Copy<Device> Value::as_device() const&& {
  return copy<Device>(as_device(), Type::kDevice);
}
Copy<Storage> Value::as_storage() const&& {
  return copy<Storage>(as_storage(), Type::kStorage);
}
Copy<Tensor> Value::as_tensor() const&& {
  return copy<Tensor>(as_tensor(), Type::kTensor);
}
Copy<List> Value::as_list() const&& {
  return copy<List>(as_list(), Type::kList);
}
Copy<Tuple> Value::as_tuple() const&& {
  return copy<Tuple>(as_tuple(), Type::kTuple);
}
Copy<Set> Value::as_set() const&& {
  return copy<Set>(as_set(), Type::kSet);
}
Copy<Dict> Value::as_dict() const&& {
  return copy<Dict>(as_dict(), Type::kDict);
}
Copy<Object> Value::as_object() const&& {
  return copy<Object>(as_object(), Type::kObject);
}

Copy<std::vector<Value>> Value::elements() const&& {
  return copy<std::vector<Value>>(elements(), Type::kList);
}

std::string Value::text() const&& {
  return std::string(text());
}

Copy<double> Value::number() const noexcept {
  return as_float();
}

// NOLINTBEGIN(cppcoreguidelines-pro-type-const-cast): of what is no const
Ref<Value> Value::find(std::string_view key) & noexcept {
  const Value* found = std::as_const(*this).find(key);
  return {const_cast<Value*>(found), asked(Type::kNone)};
}

Ref<Value> Value::find(std::int64_t key) & noexcept {
  const Value* found = std::as_const(*this).find(key);
  return {const_cast<Value*>(found), asked(Type::kNone)};
}
// NOLINTEND(cppcoreguidelines-pro-type-const-cast)

Copy<Value> Value::find(std::string_view key) const&& {
  return copy<Value>(find(key), Type::kNone);
}

Copy<Value> Value::find(std::int64_t key) const&& {
  return copy<Value>(find(key), Type::kNone);
}

} // namespace lockstep::ckpt
