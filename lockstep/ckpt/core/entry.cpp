// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/entry.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr const char* kOp = "ckpt.value";

// How to read what was found, by `Value::Type`.
constexpr std::array<std::string_view, 18> kReadAs{
    "std::optional takes None",
    "read it as bool",
    "read it as std::int64_t",
    "read it as double",
    "read it by as_dtype()",
    "read it by as_big_int()",
    "read it as std::string",
    "read it by as_bytes()",
    "read it as std::complex<double>",
    "read it as std::vector<std::int64_t>",
    "read it by as_device()",
    "",
    "read it as at::Tensor",
    "read it as std::vector, or its elements by number",
    "read it as std::tuple, or its elements by number",
    "read it as std::vector",
    "read it as std::map, or its entries by key",
    "read it by as_object()"};
static_assert(
    kReadAs.size() == static_cast<std::size_t>(Value::Type::kObject) + 1);

// "'optimizer.lr': " or nothing.
std::string at_place(const Entry& entry) {
  return entry.place().empty() ? "" : "'" + escape(entry.place()) + "': ";
}

// "str 'abc'", "dict with 3 items", "Tensor float32 [3]", "None".
std::string found(const Value& value) {
  constexpr std::size_t kShown = 80;
  const std::string text = describe(value).substr(0, kShown);
  const bool says_its_type = value.is_none() || value.is_container();
  return says_its_type ? text : format("{} {}", value.type_name(), text);
}

std::string some_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 8;
  if (keys.empty()) {
    return "it has no keys";
  }
  std::vector<std::string> shown = keys;
  shown.resize(std::min(keys.size(), kShown));
  return "its keys are " + escape(join(shown, ", "), 400) +
         (keys.size() > kShown ? ", ..." : "");
}

// What has no such key: "'optimizer'", "the file".
std::string subject(const Entry& entry) {
  if (!entry.place().empty()) {
    return "'" + escape(entry.place()) + "'";
  }
  return entry.file().empty() ? "the dict" : "the file";
}

[[noreturn]] void raise_no_key(const Entry& entry, std::string_view key) {
  const std::vector<std::string> keys = entry.keys();
  const std::string near = nearest(key, keys);
  raise(
      {.code = ErrorCode::kNotFound,
       .op = kOp,
       .message = format("{} has no key '{}'", subject(entry), escape(key)),
       .hint = near.empty() ? some_keys(keys)
                            : "did you mean '" + escape(near) + "'?",
       .path = std::string(entry.file())});
}

[[noreturn]] void
raise_no_element(const Entry& entry, std::int64_t index, std::size_t size) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = kOp,
       .message = at_place(entry) + format(
                                        "expected an element {}, got a {} of "
                                        "{}",
                                        index,
                                        entry.type_name(),
                                        size),
       .path = std::string(entry.file())});
}

const std::vector<Value>* values_in(const Value& value) {
  const Set* set = value.as_set();
  return set == nullptr
             ? static_cast<const std::vector<Value>*>(value.elements())
             : &set->items;
}

// What is read by key: the entries of a dict; of an object of another class its
// entries, or else its attributes.
const std::vector<Item>* items_in(const Value& value) {
  if (const Dict* dict = value.as_dict()) {
    return &dict->items;
  }
  const Object* object = value.as_object();
  if (object == nullptr || !object->items.empty()) {
    return object == nullptr ? nullptr : &object->items;
  }
  const Dict* attributes =
      object->state == nullptr ? nullptr : object->state->as_dict();
  return attributes == nullptr ? nullptr : &attributes->items;
}

const std::vector<Item>& items_of(
    const Entry& entry,
    const std::string& expected) {
  const std::vector<Item>* items = items_in(entry);
  if (items == nullptr) {
    internal::raise_type(entry, expected);
  }
  return *items;
}

template <class Matches>
const Value* find_in(const std::vector<Item>& items, const Matches& matches) {
  const auto found = std::ranges::find_if(items, [&](const Item& item) {
    return matches(item.first);
  });
  return found == items.end() ? nullptr : &found->second;
}

} // namespace

void internal::raise_type(const Entry& entry, std::string_view expected) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = kOp,
       .message = at_place(entry) +
                  format("expected {}, got {}", expected, found(entry)),
       .hint = std::string(kReadAs.at(static_cast<std::size_t>(entry.type()))),
       .path = std::string(entry.file())});
}

Entry Entry::below(std::string_view key, Value value) const {
  return Entry(
      std::move(value),
      place_.empty() ? std::string(key) : place_ + "." + std::string(key),
      file_);
}

Entry Entry::operator[](std::string_view key) const {
  const auto& items = items_of(*this, format("a dict with '{}'", escape(key)));
  const Value* value = find_in(items, [key](const Value& candidate) {
    const std::string* text = candidate.as_string();
    return text != nullptr && *text == key;
  });
  if (value == nullptr) {
    raise_no_key(*this, key);
  }
  return below(key, *value);
}

Entry Entry::operator[](std::int64_t index) const {
  const std::string name = std::to_string(index);
  const std::vector<Value>* values = elements();
  if (values == nullptr) {
    const auto& items =
        items_of(*this, "a list, tuple or dict with element " + name);
    const Value* value = find_in(items, [index](const Value& candidate) {
      const std::int64_t* number = candidate.as_int();
      return number != nullptr && *number == index;
    });
    if (value == nullptr) {
      raise_no_key(*this, name);
    }
    return below(name, *value);
  }
  const auto count = static_cast<std::int64_t>(values->size());
  const std::int64_t at = index < 0 ? index + count : index;
  if (at < 0 || at >= count) {
    raise_no_element(*this, index, values->size());
  }
  return below(std::to_string(at), (*values)[static_cast<std::size_t>(at)]);
}

std::int64_t Entry::size() const {
  if (const std::vector<Value>* values = values_in(*this)) {
    return static_cast<std::int64_t>(values->size());
  }
  return static_cast<std::int64_t>(
      items_of(*this, "a dict, list, tuple or set").size());
}

bool Entry::contains(std::string_view key) const noexcept {
  const std::vector<Item>* items = items_in(*this);
  return items != nullptr && find_in(*items, [key](const Value& candidate) {
                               const std::string* text = candidate.as_string();
                               return text != nullptr && *text == key;
                             }) != nullptr;
}

std::vector<std::string> Entry::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : items_of(*this, "a dict")) {
    keys.push_back(key_text(key));
  }
  return keys;
}

std::vector<std::pair<Value, Entry>> Entry::items() const {
  std::vector<std::pair<Value, Entry>> items;
  for (const auto& [key, value] : items_of(*this, "a dict")) {
    items.emplace_back(key, below(key_text(key), value));
  }
  return items;
}

EntryIterator Entry::begin() const {
  return EntryIterator(*this);
}

EntryIterator::EntryIterator(Entry container)
    : container_(std::move(container)),
      size_(static_cast<std::size_t>(container_.size())) {
  find_current();
}

EntryIterator& EntryIterator::operator++() {
  ++index_;
  find_current();
  return *this;
}

void EntryIterator::find_current() {
  // A dict or list may have changed in the loop.
  size_ = std::min(size_, static_cast<std::size_t>(container_.size()));
  if (index_ >= size_) {
    index_ = size_;
    return;
  }
  const std::vector<Item>* items = items_in(container_);
  const Value& value = items != nullptr ? (*items)[index_].first
                                        : (*values_in(container_))[index_];
  current_ = container_.below(
      items != nullptr ? key_text(value) : std::to_string(index_),
      value);
}

Entry Value::operator[](std::string_view key) const {
  return Entry(*this)[key];
}
Entry Value::operator[](std::int64_t index) const {
  return Entry(*this)[index];
}
std::int64_t Value::size() const {
  return Entry(*this).size();
}
std::vector<std::string> Value::keys() const {
  return Entry(*this).keys();
}
std::vector<std::pair<Value, Entry>> Value::items() const {
  return Entry(*this).items();
}
EntryIterator Value::begin() const {
  return Entry(*this).begin();
}

std::ostream& operator<<(std::ostream& out, const Value& value) {
  const std::string* text = value.as_string();
  return out
         << (text != nullptr ? escape(*text, std::string::npos)
                             : to_text(value));
}

} // namespace lockstep::ckpt
