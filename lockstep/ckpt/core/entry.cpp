// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/entry.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/core/value_equal.h"
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
    "read it as std::uint64_t, or by as_big_int()",
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
  std::string text = describe(value);
  text.resize(utf8_prefix(std::string_view(text).substr(0, kShown)));
  const bool says_its_type = value.is_none() || value.is_container();
  return says_its_type ? text : format("{} {}", value.type_name(), text);
}

// What has no such key: "'optimizer'", "the file".
std::string subject(const Entry& entry) {
  if (!entry.place().empty()) {
    return "'" + escape(entry.place()) + "'";
  }
  return entry.file().empty() ? "the dict" : "the file";
}

// What was appended to an object: the values of its entries, in order.
const std::vector<Item>* appended_in(const Value& value) {
  const Object* object = value.as_object();
  return object != nullptr && object->is_sequence ? &object->items : nullptr;
}

// What is read by key: the entries of a dict; of an object of another class its
// entries, or else its attributes.
const std::vector<Item>* items_in(const Value& value) {
  if (const Dict* dict = value.as_dict()) {
    return &dict->items;
  }
  const Object* object = value.as_object();
  if (object == nullptr || object->is_sequence) {
    return nullptr;
  }
  if (!object->items.empty()) {
    return &object->items;
  }
  const Dict* attributes =
      object->state == nullptr ? nullptr : object->state->as_dict();
  return attributes == nullptr ? nullptr : &attributes->items;
}

// The elements of a list, tuple, set or what was appended to an object: how
// many there are, or nothing for another value; and one of them.
std::optional<std::size_t> element_count(const Value& value) {
  if (const std::vector<Value>* values = value.elements()) {
    return values->size();
  }
  if (const Set* set = value.as_set()) {
    return set->items.size();
  }
  const std::vector<Item>* appended = appended_in(value);
  return appended == nullptr ? std::nullopt : std::optional(appended->size());
}

const Value& element(const Value& value, std::size_t index) {
  if (const std::vector<Value>* values = value.elements()) {
    return (*values)[index];
  }
  const Set* set = value.as_set();
  return set == nullptr ? (*appended_in(value))[index].second
                        : set->items[index];
}

std::string hint_of_keys(const Entry& entry, const Value& key) {
  std::vector<std::string> alike;
  for (const auto& [candidate, value] : *items_in(entry)) {
    if (candidate.type() == key.type()) {
      alike.push_back(key_text(candidate));
    } else if (key_text(candidate) == key_text(key)) {
      return format("the key is of type {}", candidate.type_name());
    }
  }
  const std::string near =
      key.as_string() == nullptr ? "" : nearest(key.text(), alike);
  return near.empty() ? internal::some_keys(entry.keys())
                      : "did you mean '" + escape(near) + "'?";
}

[[noreturn]] void raise_no_key(const Entry& entry, const Value& key) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = kOp,
       .message =
           format("{} has no key '{}'", subject(entry), escape(key_text(key))),
       .hint = hint_of_keys(entry, key),
       .path = entry.file()});
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
       .path = entry.file()});
}

// `key`: what is looked for, for the error.
const std::vector<Item>& items_of(
    const Entry& entry,
    const std::string& expected = "a dict",
    const Value* key = nullptr) {
  const std::vector<Item>* items = items_in(entry);
  if (items == nullptr) {
    internal::raise_type(
        entry,
        key == nullptr
            ? expected
            : format("{} with '{}'", expected, escape(key_text(*key))));
  }
  return *items;
}

const Value* find_in(const std::vector<Item>& items, const Value& key) {
  const auto found = std::ranges::find_if(items, [&](const Item& item) {
    return internal::equal_keys(item.first, key);
  });
  return found == items.end() ? nullptr : &found->second;
}

// What an index means, from the end if negative; nothing outside.
std::optional<std::size_t> place_in(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t at = index < 0 ? index + count : index;
  return at < 0 || at >= count ? std::nullopt
                               : std::optional(static_cast<std::size_t>(at));
}

} // namespace

void internal::raise_type(const Entry& entry, std::string_view expected) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = kOp,
       .message = at_place(entry) +
                  format("expected {}, got {}", expected, found(entry)),
       .hint = std::string(kReadAs.at(static_cast<std::size_t>(entry.type()))),
       .path = entry.file()});
}

std::string internal::some_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 8;
  if (keys.empty()) {
    return "it has no keys";
  }
  std::vector<std::string> shown = keys;
  shown.resize(std::min(keys.size(), kShown));
  return "its keys are " + escape(join(shown, ", "), 400) +
         (keys.size() > kShown ? ", ..." : "");
}

Entry internal::key_of(const Entry& dict, Value key) {
  const std::string place = dict.place();
  return Entry(
      std::move(key),
      place.empty() ? "(a key)" : place + " (a key)",
      dict.file().empty() ? nullptr
                          : std::make_shared<const std::string>(dict.file()));
}

Entry Entry::below(std::string_view key, Value value) const {
  // Each of many elements has a place of its own.
  constexpr std::size_t kLongest = 256;
  std::string place = place_;
  place += place.empty() ? "" : ".";
  place += key.substr(0, kLongest);
  return Entry(std::move(value), std::move(place), file_);
}

Entry Entry::operator[](std::string_view key) const {
  return at(Value(key));
}

Entry Entry::at(const Value& key) const {
  const std::int64_t* index = key.as_int();
  const auto count = element_count(*this);
  if (index != nullptr && count && as_set() == nullptr) {
    const auto at = place_in(*index, *count);
    if (!at) {
      raise_no_element(*this, *index, *count);
    }
    return below(std::to_string(*at), element(*this, *at));
  }
  const std::vector<Item>& items = items_of(
      *this,
      index != nullptr ? "a list, tuple or dict" : "a dict",
      &key);
  const Value* value = find_in(items, key);
  if (value == nullptr) {
    raise_no_key(*this, key);
  }
  return below(key_text(key), *value);
}

std::int64_t Entry::size() const {
  const auto count = element_count(*this);
  return static_cast<std::int64_t>(
      count ? *count : items_of(*this, "a dict, list, tuple or set").size());
}

bool Entry::contains(std::string_view key) const {
  return contains_key(Value(key));
}

bool Entry::contains_key(const Value& key) const {
  const std::vector<Item>* items = items_in(*this);
  return items != nullptr && find_in(*items, key) != nullptr;
}

std::vector<std::string> Entry::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : items_of(*this)) {
    keys.push_back(key_text(key));
  }
  return keys;
}

std::vector<std::pair<Value, Entry>> Entry::items() const {
  std::vector<std::pair<Value, Entry>> items;
  for (const auto& [key, value] : items_of(*this)) {
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
  if (element_count(container_)) {
    current_ =
        container_.below(std::to_string(index_), element(container_, index_));
  } else {
    current_ = internal::key_of(container_, items_of(container_)[index_].first);
  }
}

std::vector<Entry> internal::elements_in(
    const Entry& entry,
    std::optional<std::size_t> count) {
  std::vector<Entry> elements;
  if (const Size* size = entry.as_size()) {
    for (const std::int64_t dimension : size->sizes) {
      elements.emplace_back(dimension, entry.place());
    }
  } else if (element_count(entry)) {
    std::ranges::copy(entry, std::back_inserter(elements));
  } else {
    raise_type(entry, "a list or tuple");
  }
  if (count && *count != elements.size()) {
    raise_type(
        entry,
        format("a list or tuple of {}", counted(*count, "element")));
  }
  return elements;
}

Entry Value::operator[](std::string_view key) const {
  return Entry(*this)[key];
}
bool Value::contains(std::string_view key) const {
  return Entry(*this).contains(key);
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
