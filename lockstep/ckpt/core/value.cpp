// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/value.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/change_container.h"
#include "lockstep/ckpt/core/value_equal.h"

namespace lockstep::ckpt {
namespace {

// Types with values in them.
template <class T>
concept Container = requires(T& node) { node.items; };

// True for a node without containers in it: most are like that, and their
// destructors do not nest. `alone`: nobody else holds it. Not through what
// others hold, too: that could be looked at again and again.
struct IsFlat {
  bool alone = false;

  template <class T>
  bool operator()(const T& /*scalar*/) const {
    return true;
  }
  template <Container T>
  bool operator()(const T& node) const {
    if constexpr (std::is_same_v<T, Dict>) {
      return node.items.empty() && node.attributes.empty();
    } else if constexpr (std::is_same_v<T, Object>) {
      return node.items.empty() && !node.args && !node.state;
    } else {
      return node.items.empty() ||
             (alone && std::ranges::none_of(node.items, &Value::is_container));
    }
  }
};

bool is_flat(const Value& value) {
  return value.visit(IsFlat{.alone = value.owners() == 1});
}

// Moves what a node contains into `pending`, so that the caller can destroy one
// level at a time.
struct Release {
  std::vector<Value>& pending;

  template <class T>
  void operator()(T& node) const {
    take(node.items);
    if constexpr (std::is_same_v<T, Dict>) {
      take(node.attributes);
    }
    if constexpr (std::is_same_v<T, Object>) {
      for (auto* child : {&node.args, &node.state}) {
        if (*child && child->use_count() == 1) {
          take(**child);
        }
        child->reset();
      }
    }
  }

 private:
  void take(Value& value) const {
    if (value.is_container() && !is_flat(value)) {
      pending.push_back(std::move(value));
    }
  }
  void take(std::vector<Value>& from) const {
    for (Value& item : from) {
      take(item);
    }
    from.clear();
  }
  void take(std::vector<Item>& from) const {
    for (auto& [key, item] : from) {
      take(key);
      take(item);
    }
    from.clear();
  }
};

// By `Value::Type`.
constexpr std::array<std::string_view, 18> kTypeNames{
    "NoneType",
    "bool",
    "int",
    "float",
    "dtype",
    "int",
    "str",
    "bytes",
    "complex",
    "Size",
    "device",
    "storage",
    "Tensor",
    "list",
    "tuple",
    "set",
    "dict",
    "object"};
static_assert(
    kTypeNames.size() == static_cast<std::size_t>(Value::Type::kObject) + 1);

template <class Key>
const Value* find_key(const Value& value, const Key& matches) {
  const Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return nullptr;
  }
  for (const Item& item : dict->items) {
    if (matches(item.first)) {
      return &item.second;
    }
  }
  return nullptr;
}

std::string_view name_of(ValueType type) {
  return kTypeNames.at(static_cast<std::size_t>(type));
}

} // namespace

void internal::raise_absent(Asked asked) {
  if (asked.wanted == ValueType::kNone) {
    raise(
        {.code = ErrorCode::kNotFound,
         .op = "ckpt.value",
         .message = asked.got == ValueType::kDict
                        ? "the dict has no such key"
                        : format(
                              "expected a dict with the key, got {}",
                              name_of(asked.got)),
         .hint = "ask first: if (const auto* entry = value.find(key))"});
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "ckpt.value",
       .message = format(
           "expected a value of type {}, got {}",
           name_of(asked.wanted),
           name_of(asked.got)),
       .hint = "ask its type() first, or whether the accessor gives anything"});
}

// The pickler and readers share strings and never change them: const is a
// matter of the accessors.
Value::Value(const char* v)
    : Value(v == nullptr ? std::string_view() : std::string_view(v)) {
  if (v == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "ckpt.value",
         .message = "a text is null"});
  }
}
Value::Value(std::string v)
    : Value(Type::kString, std::make_shared<std::string>(std::move(v))) {}
Value::Value(BigInt v)
    : Value(Type::kBigInt, std::make_shared<BigInt>(std::move(v))) {}
Value::Value(Bytes v)
    : Value(Type::kBytes, std::make_shared<Bytes>(std::move(v))) {}
Value::Value(Complex v) : Value(Type::kComplex, std::make_shared<Complex>(v)) {}
Value::Value(Size v)
    : Value(Type::kSize, std::make_shared<Size>(std::move(v))) {}
Value::Value(Device v)
    : Value(Type::kDevice, std::make_shared<Device>(std::move(v))) {}
Value::Value(Tensor v) : Value(std::make_shared<Tensor>(std::move(v))) {}
Value::Value(List v) : Value(std::make_shared<List>(std::move(v))) {}
Value::Value(Tuple v) : Value(std::make_shared<Tuple>(std::move(v))) {}
Value::Value(Set v) : Value(std::make_shared<Set>(std::move(v))) {}
Value::Value(Dict v) : Value(std::make_shared<Dict>(std::move(v))) {}
Value::Value(Object v) : Value(std::make_shared<Object>(std::move(v))) {}

void Value::set_unsigned(std::uint64_t number) {
  if (std::in_range<std::int64_t>(number)) {
    return;
  }
  BigInt big;
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    big.bytes += static_cast<char>(number >> (8 * i) & 0xffU);
  }
  big.bytes += '\0'; // the sign
  *this = std::move(big);
}

void Value::release() {
  if (owners() != 1 || is_flat(*this)) {
    return;
  }
  std::vector<Value> pending;
  internal::change_container(*this, Release{pending});
  while (!pending.empty()) {
    Value last = std::move(pending.back());
    pending.pop_back();
    if (last.owners() == 1) {
      internal::change_container(last, Release{pending});
    }
  }
}

Value Value::dict(std::initializer_list<Item> items) {
  return Dict{.items = items};
}

Value Value::ordered_dict(std::initializer_list<Item> items) {
  return Dict{.kind = Dict::Kind::kOrderedDict, .items = items};
}

Value Value::list(std::initializer_list<Value> items) {
  return List{items};
}

Value Value::tuple(std::initializer_list<Value> items) {
  return Tuple{items};
}

std::shared_ptr<const std::string> Value::shared_string() const {
  return type_ == Type::kString
             ? std::static_pointer_cast<const std::string>(node_)
             : nullptr;
}

std::shared_ptr<Storage> Value::shared_storage() const {
  return type_ == Type::kStorage ? std::static_pointer_cast<Storage>(node_)
                                 : nullptr;
}

std::shared_ptr<Tensor> Value::shared_tensor() const {
  return type_ == Type::kTensor ? std::static_pointer_cast<Tensor>(node_)
                                : nullptr;
}

Ref<const std::vector<Value>> Value::elements() const& noexcept {
  const List* list = as_list();
  const Tuple* tuple = as_tuple();
  return {
      list != nullptr    ? &list->items
      : tuple != nullptr ? &tuple->items
                         : nullptr,
      asked(Type::kList)};
}

std::string_view Value::text() const& noexcept {
  const std::string* string = as_string();
  return string == nullptr ? std::string_view() : *string;
}

Copy<double> Value::as_float() const noexcept {
  std::optional<double> number;
  if (type_ == Type::kFloat) {
    number = scalar_.real;
  } else if (type_ == Type::kInt) {
    number = static_cast<double>(scalar_.integer);
  } else if (type_ == Type::kBigInt) {
    number = internal::double_of(*as_big_int());
  }
  return {number, asked(Type::kFloat)};
}

Ref<const Value> Value::find(std::string_view key) const& noexcept {
  return {
      find_key(
          *this,
          [key](const Value& candidate) {
            const std::string* text = candidate.as_string();
            return text != nullptr && *text == key;
          }),
      asked(Type::kNone)};
}

Ref<const Value> Value::find(std::int64_t key) const& noexcept {
  return {
      find_key(
          *this,
          [key](const Value& candidate) {
            const std::int64_t* integer = candidate.as_int();
            return integer != nullptr && *integer == key;
          }),
      asked(Type::kNone)};
}

void Value::set(Value key, Value value) {
  Dict& dict = *as_dict();
  for (auto& [old_key, old_value] : dict.items) {
    if (internal::equal_keys(old_key, key)) {
      old_value = std::move(value);
      return;
    }
  }
  dict.items.emplace_back(std::move(key), std::move(value));
}

std::string_view Value::type_name() const noexcept {
  return name_of(type_);
}

} // namespace lockstep::ckpt
