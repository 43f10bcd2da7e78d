// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/value.h"

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"

namespace lockstep::ckpt {
namespace {

// Types of `Value::Variant` with values in them.
template <class T>
concept Container = requires(T node) { node->items; };

// True for a value without containers in it: most are like that, and their
// destructors do not nest.
struct IsFlat {
  template <class T>
  bool operator()(const T& /*scalar*/) const {
    return true;
  }
  template <Container T>
  bool operator()(const T& node) const {
    using Node = typename T::element_type;
    if (node == nullptr) {
      return true;
    }
    if constexpr (std::is_same_v<Node, Dict>) {
      return node->items.empty() && node->attributes.empty();
    } else if constexpr (std::is_same_v<Node, Object>) {
      return node->items.empty() && !node->args && !node->state;
    } else {
      // Not through what others hold, too: that could be looked at again and
      // again.
      return node->items.empty() ||
             (node.use_count() == 1 &&
              std::ranges::none_of(node->items, &Value::is_container));
    }
  }
};

// True for the last owner of containers inside a container.
struct EndsContainers {
  template <class T>
  bool operator()(const T& /*scalar*/) const {
    return false;
  }
  template <Container T>
  bool operator()(const T& node) const {
    return node.use_count() == 1 && !IsFlat{}(node);
  }
};

// Moves what a node alone owns into `pending`, so that the caller can destroy
// one level at a time.
struct Release {
  std::vector<Value>& pending;

  template <class T>
  void operator()(const T& /*scalar*/) const {}
  template <Container T>
  void operator()(const T& node) const {
    using Node = typename T::element_type;
    if (node == nullptr || node.use_count() != 1) {
      return;
    }
    take(node->items);
    if constexpr (std::is_same_v<Node, Dict>) {
      take(node->attributes);
    }
    if constexpr (std::is_same_v<Node, Object>) {
      for (auto* child : {&node->args, &node->state}) {
        if (*child && child->use_count() == 1) {
          take(**child);
        }
        child->reset();
      }
    }
  }

 private:
  void take(Value& value) const {
    if (!std::visit(IsFlat{}, value.data())) {
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

constexpr std::array<std::string_view, std::variant_size_v<Value::Variant>>
    kTypeNames{
        "NoneType",
        "bool",
        "int",
        "int",
        "float",
        "str",
        "bytes",
        "complex",
        "Size",
        "device",
        "dtype",
        "Tensor",
        "list",
        "tuple",
        "set",
        "dict",
        "object"};

template <class T>
T* pointer_to(const Value::Variant& data) {
  const auto* node = std::get_if<std::shared_ptr<T>>(&data);
  return node == nullptr ? nullptr : node->get();
}

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

} // namespace

std::int64_t Tensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return count;
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) {
      return numel() == 0;
    }
    expected *= sizes[i];
  }
  return true;
}

Result<ByteSpan> StorageSource::view(
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& /*scratch*/) {
  LOCKSTEP_ASSIGN(const ByteSpan all, load());
  LOCKSTEP_DCHECK(offset <= all.size() && length <= all.size() - offset);
  return all.subspan(offset, length);
}

Value::Value(List v) : data_(std::make_shared<List>(std::move(v))) {}
Value::Value(Tuple v) : data_(std::make_shared<Tuple>(std::move(v))) {}
Value::Value(Set v) : data_(std::make_shared<Set>(std::move(v))) {}
Value::Value(Dict v) : data_(std::make_shared<Dict>(std::move(v))) {}
Value::Value(Object v) : data_(std::make_shared<Object>(std::move(v))) {}

void Value::release() {
  if (!std::visit(EndsContainers{}, data_)) {
    return;
  }
  std::vector<Value> pending;
  std::visit(Release{pending}, data_);
  while (!pending.empty()) {
    const Value last = std::move(pending.back());
    pending.pop_back();
    std::visit(Release{pending}, last.data_);
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

bool Value::is_none() const noexcept {
  return std::holds_alternative<None>(data_);
}
const bool* Value::as_bool() const noexcept {
  return std::get_if<bool>(&data_);
}
const std::int64_t* Value::as_int() const noexcept {
  return std::get_if<std::int64_t>(&data_);
}
const double* Value::as_float() const noexcept {
  return std::get_if<double>(&data_);
}
const std::string* Value::as_string() const noexcept {
  const auto* text = std::get_if<std::shared_ptr<const std::string>>(&data_);
  return text == nullptr ? nullptr : text->get();
}
Tensor* Value::as_tensor() const noexcept {
  return pointer_to<Tensor>(data_);
}
List* Value::as_list() const noexcept {
  return pointer_to<List>(data_);
}
Tuple* Value::as_tuple() const noexcept {
  return pointer_to<Tuple>(data_);
}
Dict* Value::as_dict() const noexcept {
  return pointer_to<Dict>(data_);
}
Object* Value::as_object() const noexcept {
  return pointer_to<Object>(data_);
}

std::optional<double> Value::number() const noexcept {
  if (const auto* integer = as_int()) {
    return static_cast<double>(*integer);
  }
  if (const auto* real = as_float()) {
    return *real;
  }
  return std::nullopt;
}

const Value* Value::find(std::string_view key) const noexcept {
  return find_key(*this, [key](const Value& candidate) {
    const auto* text = candidate.as_string();
    return text != nullptr && *text == key;
  });
}

const Value* Value::find(std::int64_t key) const noexcept {
  return find_key(*this, [key](const Value& candidate) {
    const auto* integer = candidate.as_int();
    return integer != nullptr && *integer == key;
  });
}

void Value::set(Value key, Value value) {
  Dict* dict = as_dict();
  LOCKSTEP_DCHECK(dict != nullptr);
  const Value* old = nullptr;
  if (const auto* text = key.as_string()) {
    old = find(*text);
  } else if (const auto* integer = key.as_int()) {
    old = find(*integer);
  }
  if (old == nullptr) {
    dict->items.emplace_back(std::move(key), std::move(value));
    return;
  }
  for (auto& item : dict->items) {
    if (&item.second == old) {
      item.second = std::move(value);
      return;
    }
  }
}

std::string_view Value::type_name() const noexcept {
  return kTypeNames.at(data_.index());
}

} // namespace lockstep::ckpt
