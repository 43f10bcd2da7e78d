// SPDX-License-Identifier: BSD-3-Clause
//
// The value tree: everything a checkpoint file can hold, as plain data.
// Readers make it, writers take it, edits change it; nothing in it is code.
//   Value v = Value::dict({{"epoch", 3}, {"state_dict", weights}});
//   const Value* lr = v.find("optimizer")->find("param_groups");
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/value_parts.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// Key and value in file order. Most keys are strings, optimizers' integers.
using Item = std::pair<Value, Value>;

class Entry;
class EntryIterator;
struct Dict;
struct Object;
struct List;
struct Tuple;
struct Set;

/// How a T becomes a value: `static Value get(const T&)`. convert.h has the
/// types of C++; specialise it for your own.
template <class T>
struct ToValue;

/// One node of the tree. Copying shares containers: copies are cheap, and a
/// node reached twice stays one node (a memo reference in the file). Strings
/// are shared the same way, since Python's pickler goes by identity, too.
/// Change a container only through the owner you made it with.
class Value {
 public:
  using Type = ValueType;

  Value() = default;
  // Implicit on purpose: literals read well inside `Value::dict({...})`.
  // NOLINTBEGIN(google-explicit-constructor)
  Value(None) {}
  // A template takes a bool as it is, not what converts to one: no pointers.
  template <std::same_as<bool> T>
  Value(T v) : scalar_{.boolean = v}, type_(Type::kBool) {}
  template <IntegerType T>
  Value(T v)
      : scalar_{.integer = static_cast<std::int64_t>(v)}, type_(Type::kInt) {
    if constexpr (!std::in_range<std::int64_t>(std::numeric_limits<T>::max())) {
      set_unsigned(v);
    }
  }
  template <std::floating_point T>
  Value(T v) : scalar_{.real = static_cast<double>(v)}, type_(Type::kFloat) {}
  template <class T>
    requires requires(const T& v) {
      { ToValue<T>::get(v) } -> std::same_as<Value>;
    }
  Value(const T& v) : Value(ToValue<T>::get(v)) {}
  /// Nothing would become None without a word: `*value.as_int()`.
  template <class T>
  Value(const Copy<T>& v) = delete;
  Value(DTypeValue v) : scalar_{.dtype = v}, type_(Type::kDType) {}
  /// Errors: throws kInvalidArgument for null.
  Value(const char* v);
  Value(std::nullptr_t) = delete;
  Value(std::string v);
  Value(std::string_view v) : Value(std::string(v)) {}
  Value(BigInt v);
  Value(Bytes v);
  Value(Complex v);
  Value(Size v);
  Value(Device v);
  Value(Tensor v);
  Value(List v);
  Value(Tuple v);
  Value(Set v);
  Value(Dict v);
  Value(Object v);
  Value(std::shared_ptr<Storage> v) : Value(Type::kStorage, std::move(v)) {}
  Value(std::shared_ptr<Tensor> v) : Value(Type::kTensor, std::move(v)) {}
  Value(std::shared_ptr<List> v) : Value(Type::kList, std::move(v)) {}
  Value(std::shared_ptr<Tuple> v) : Value(Type::kTuple, std::move(v)) {}
  Value(std::shared_ptr<Set> v) : Value(Type::kSet, std::move(v)) {}
  Value(std::shared_ptr<Dict> v) : Value(Type::kDict, std::move(v)) {}
  Value(std::shared_ptr<Object> v) : Value(Type::kObject, std::move(v)) {}
  // NOLINTEND(google-explicit-constructor)
  Value(const Value&) = default;
  /// What was moved from is None.
  Value(Value&& other) noexcept
      : node_(std::move(other.node_)),
        scalar_(other.scalar_),
        type_(std::exchange(other.type_, Type::kNone)) {}
  Value& operator=(const Value&) = default;
  Value& operator=(Value&& other) noexcept {
    node_ = std::move(other.node_);
    scalar_ = other.scalar_;
    type_ = std::exchange(other.type_, Type::kNone);
    return *this;
  }
  /// Iterative: a deeply nested tree does not overflow the stack.
  ~Value() {
    if (is_container()) {
      release();
    }
  }

  static Value dict(std::initializer_list<Item> items);
  static Value ordered_dict(std::initializer_list<Item> items);
  static Value list(std::initializer_list<Value> items);
  static Value tuple(std::initializer_list<Value> items);

  [[nodiscard]] Type type() const noexcept {
    return type_;
  }
  [[nodiscard]] bool is_none() const noexcept {
    return type_ == Type::kNone;
  }
  /// True for a list, tuple, set, dict or object.
  [[nodiscard]] bool is_container() const noexcept {
    return type_ >= Type::kList;
  }
  /// The value of that type, or null: a pointer into this value, of a temporary
  /// one a copy. `*` and `->` of null throw and name the type that it is.
  [[nodiscard]] Ref<const bool> as_bool() const& noexcept {
    return {
        type_ == Type::kBool ? &scalar_.boolean : nullptr,
        asked(Type::kBool)};
  }
  [[nodiscard]] Copy<bool> as_bool() const&& noexcept;
  [[nodiscard]] Ref<const std::int64_t> as_int() const& noexcept {
    return {
        type_ == Type::kInt ? &scalar_.integer : nullptr,
        asked(Type::kInt)};
  }
  [[nodiscard]] Copy<std::int64_t> as_int() const&& noexcept;
  [[nodiscard]] Ref<const DTypeValue> as_dtype() const& noexcept {
    return {
        type_ == Type::kDType ? &scalar_.dtype : nullptr,
        asked(Type::kDType)};
  }
  [[nodiscard]] Copy<DTypeValue> as_dtype() const&& noexcept;
  /// A float or an int as double, as Python reckons with it; of an int that no
  /// double reaches, and of other types, nothing.
  [[nodiscard]] Copy<double> as_float() const noexcept;
  [[nodiscard]] Ref<const BigInt> as_big_int() const& noexcept {
    return as<const BigInt>(Type::kBigInt);
  }
  [[nodiscard]] Copy<BigInt> as_big_int() const&&;
  [[nodiscard]] Ref<const std::string> as_string() const& noexcept {
    return as<const std::string>(Type::kString);
  }
  [[nodiscard]] Copy<std::string> as_string() const&&;
  [[nodiscard]] Ref<const Bytes> as_bytes() const& noexcept {
    return as<const Bytes>(Type::kBytes);
  }
  [[nodiscard]] Copy<Bytes> as_bytes() const&&;
  [[nodiscard]] Ref<const Complex> as_complex() const& noexcept {
    return as<const Complex>(Type::kComplex);
  }
  [[nodiscard]] Copy<Complex> as_complex() const&&;
  [[nodiscard]] Ref<const Size> as_size() const& noexcept {
    return as<const Size>(Type::kSize);
  }
  [[nodiscard]] Copy<Size> as_size() const&&;
  [[nodiscard]] Ref<const Device> as_device() const& noexcept {
    return as<const Device>(Type::kDevice);
  }
  [[nodiscard]] Copy<Device> as_device() const&&;
  [[nodiscard]] Ref<const Storage> as_storage() const& noexcept {
    return as<const Storage>(Type::kStorage);
  }
  [[nodiscard]] Ref<Storage> as_storage() & noexcept;
  [[nodiscard]] Copy<Storage> as_storage() const&&;
  [[nodiscard]] Ref<const Tensor> as_tensor() const& noexcept {
    return as<const Tensor>(Type::kTensor);
  }
  [[nodiscard]] Ref<Tensor> as_tensor() & noexcept;
  [[nodiscard]] Copy<Tensor> as_tensor() const&&;
  [[nodiscard]] Ref<const List> as_list() const& noexcept {
    return as<const List>(Type::kList);
  }
  [[nodiscard]] Ref<List> as_list() & noexcept;
  [[nodiscard]] Copy<List> as_list() const&&;
  [[nodiscard]] Ref<const Tuple> as_tuple() const& noexcept {
    return as<const Tuple>(Type::kTuple);
  }
  [[nodiscard]] Ref<Tuple> as_tuple() & noexcept;
  [[nodiscard]] Copy<Tuple> as_tuple() const&&;
  [[nodiscard]] Ref<const Set> as_set() const& noexcept {
    return as<const Set>(Type::kSet);
  }
  [[nodiscard]] Ref<Set> as_set() & noexcept;
  [[nodiscard]] Copy<Set> as_set() const&&;
  [[nodiscard]] Ref<const Dict> as_dict() const& noexcept {
    return as<const Dict>(Type::kDict);
  }
  [[nodiscard]] Ref<Dict> as_dict() & noexcept;
  [[nodiscard]] Copy<Dict> as_dict() const&&;
  [[nodiscard]] Ref<const Object> as_object() const& noexcept {
    return as<const Object>(Type::kObject);
  }
  [[nodiscard]] Ref<Object> as_object() & noexcept;
  [[nodiscard]] Copy<Object> as_object() const&&;
  /// The string, storage or tensor itself, to share it; null for another type.
  [[nodiscard]] std::shared_ptr<const std::string> shared_string() const;
  [[nodiscard]] std::shared_ptr<Storage> shared_storage() const;
  [[nodiscard]] std::shared_ptr<Tensor> shared_tensor() const;
  /// What a list or tuple holds; null for another type.
  [[nodiscard]] Ref<const std::vector<Value>> elements() const& noexcept;
  [[nodiscard]] Copy<std::vector<Value>> elements() const&&;
  /// The string; empty for another type.
  [[nodiscard]] std::string_view text() const& noexcept;
  [[nodiscard]] std::string text() const&&;
  /// Int or float as double (Python's implicit widening): `as_float`.
  [[nodiscard]] Copy<double> number() const noexcept;

  /// Address of what is shared; null for what is inside the value.
  [[nodiscard]] const void* address() const noexcept {
    return node_.get();
  }
  /// Number of owners of what is shared; 0 for what is inside the value.
  [[nodiscard]] std::int64_t owners() const noexcept {
    return node_.use_count();
  }

  /// Calls `visitor` with what this is: `None`, `bool`, `std::int64_t`,
  /// `const std::string&`, `const Tensor&`, `const List&` and so on.
  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const;

  /// Entry of a dict by string or integer key; null if this is not a dict or
  /// has no such key.
  [[nodiscard]] Ref<const Value> find(std::string_view key) const& noexcept;
  [[nodiscard]] Ref<const Value> find(std::int64_t key) const& noexcept;
  [[nodiscard]] Ref<Value> find(std::string_view key) & noexcept;
  [[nodiscard]] Ref<Value> find(std::int64_t key) & noexcept;
  [[nodiscard]] Copy<Value> find(std::string_view key) const&&;
  [[nodiscard]] Copy<Value> find(std::int64_t key) const&&;
  /// Sets an entry of a dict, replacing one whose key is equal in Python: None,
  /// 1 and 1.0 and True, texts, bytes, tuples of them. Errors: throws
  /// kInvalidArgument if this is not a dict.
  void set(Value key, Value value);

  /// As in Python: see `Entry` in entry.h; include convert.h for `to`.
  [[nodiscard]] Entry operator[](std::string_view key) const;
  template <IntegerType T>
  [[nodiscard]] Entry operator[](T index) const;
  template <class T>
  [[nodiscard]] T to() const;
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] bool contains(std::string_view key) const;
  template <IntegerType T>
  [[nodiscard]] bool contains(T key) const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::vector<std::pair<Value, Entry>> items() const;
  [[nodiscard]] EntryIterator begin() const;
  [[nodiscard]] std::default_sentinel_t end() const noexcept {
    return {};
  }

  /// Python's word for the type: "dict", "int", "Tensor".
  [[nodiscard]] std::string_view type_name() const noexcept;

 private:
  union Scalar {
    std::int64_t integer = 0;
    double real;
    bool boolean;
    DTypeValue dtype;
  };

  Value(Type type, std::shared_ptr<void> node)
      : node_(std::move(node)), type_(type) {}
  [[nodiscard]] internal::Asked asked(Type wanted) const noexcept {
    return {.got = type_, .wanted = wanted};
  }
  template <class T>
  [[nodiscard]] Ref<T> as(Type type) const noexcept {
    return {
        type_ == type ? static_cast<T*>(node_.get()) : nullptr,
        asked(type)};
  }
  template <class T>
  [[nodiscard]] Copy<T> copy(const T* found, Type type) const {
    return {
        found == nullptr ? std::optional<T>() : std::optional<T>(*found),
        asked(type)};
  }
  void release();
  void set_unsigned(std::uint64_t number);

  std::shared_ptr<void> node_ = {};
  Scalar scalar_ = {};
  Type type_ = Type::kNone;
};

/// A Python dict. Order is the file's.
struct Dict {
  /// How the dict is spelled in a pickle.
  enum class Kind { kDict, kOrderedDict, kCounter };
  Kind kind = Kind::kDict;
  std::vector<Item> items = {};
  /// Attributes set on an OrderedDict (`_metadata` of a state_dict).
  std::vector<Item> attributes = {};
};

/// A value whose class we do not run: the class's name and what was given.
struct Object {
  /// "module.Class".
  std::string global = {};
  /// Arguments of REDUCE or NEWOBJ (a tuple), None without a call.
  std::shared_ptr<Value> args = {};
  /// Argument of BUILD, empty without one.
  std::shared_ptr<Value> state = {};
  /// Items appended or set on the object, in order.
  std::vector<Item> items = {};
  /// They were appended: a `deque`, whose keys are 0, 1, ...
  bool is_sequence = false;
};

struct List {
  std::vector<Value> items = {};
};
struct Tuple {
  std::vector<Value> items = {};
};
struct Set {
  std::vector<Value> items = {};
};

/// A text as it is, with its control characters escaped; everything else as
/// `to_text` prints it.
std::ostream& operator<<(std::ostream& out, const Value& value);

template <class Visitor>
decltype(auto) Value::visit(Visitor&& visitor) const {
  switch (type_) {
    case Type::kNone:
      return visitor(None{});
    case Type::kBool:
      return visitor(scalar_.boolean);
    case Type::kInt:
      return visitor(scalar_.integer);
    case Type::kFloat:
      return visitor(scalar_.real);
    case Type::kDType:
      return visitor(scalar_.dtype);
    case Type::kBigInt:
      return visitor(*as_big_int());
    case Type::kString:
      return visitor(*as_string());
    case Type::kBytes:
      return visitor(*as_bytes());
    case Type::kComplex:
      return visitor(*as_complex());
    case Type::kSize:
      return visitor(*as_size());
    case Type::kDevice:
      return visitor(*as_device());
    case Type::kStorage:
      return visitor(*as_storage());
    case Type::kTensor:
      return visitor(*as_tensor());
    case Type::kList:
      return visitor(*as_list());
    case Type::kTuple:
      return visitor(*as_tuple());
    case Type::kSet:
      return visitor(*as_set());
    case Type::kDict:
      return visitor(*as_dict());
    case Type::kObject:
      return visitor(*as_object());
  }
  __builtin_unreachable();
}

} // namespace lockstep::ckpt

/// As for `Checkpoint`.
template <>
inline constexpr bool lockstep::kNamesResult<lockstep::ckpt::Value> = true;
#pragma GCC visibility pop
