// SPDX-License-Identifier: BSD-3-Clause
//
// Values read as in Python: entries by key and index, as C++ types, in loops.
//   const auto best = file["best_mIoU"].to<double>();
//   for (const auto& [key, value] : file["optimizer"].items()) { ... }
//   for (const auto& group : file["optimizer"]["param_groups"]) {
//     std::cout << group["lr"] << "\n";
//   }
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// How a value becomes a T: `static T get(const Entry&)`. convert.h has the
/// types of C++; specialise it for your own.
template <class T>
struct FromValue;

/// A value, and the place where it was found. An object of another class
/// (`argparse.Namespace`, a `defaultdict`, a `deque`) is read as the dict or
/// list of its entries, or else as the dict of its attributes.
/// Ownership: holds the value.
class Entry : public Value {
 public:
  Entry() = default;
  /// `place`: its keys, with dots between; "" is the whole tree.
  /// `file`: what the tree was read from, for errors; null for none.
  explicit Entry(
      Value value,
      std::string place = {},
      std::shared_ptr<const std::string> file = {})
      : Value(std::move(value)),
        place_(std::move(place)),
        file_(std::move(file)) {}

  /// "optimizer.param_groups.0.lr"; keys of over 256 bytes are cut.
  [[nodiscard]] std::string place() const {
    return place_;
  }
  /// Path of the file; empty if there is none.
  [[nodiscard]] std::string file() const {
    return file_ == nullptr ? std::string() : *file_;
  }

  /// The entry of a dict under a text. Errors: throws kNotFound, with the
  /// nearest key; kMismatch if this is no dict.
  [[nodiscard]] Entry operator[](std::string_view key) const;
  /// The element of a list or tuple, from the end if negative, or the entry of
  /// a dict under a number. Errors: as above.
  template <IntegerType T>
  [[nodiscard]] Entry operator[](T index) const {
    return at(Value(index));
  }
  /// Under a key that a loop gave. Errors: as above.
  template <std::derived_from<Value> T>
  [[nodiscard]] Entry operator[](const T& key) const {
    return at(key);
  }

  /// The value as a T: bool, any number type, std::string, std::optional (None
  /// is nothing), std::vector, std::array, std::map, std::unordered_map,
  /// std::pair, std::tuple, `Value`, `Tensor`; with LibTorch `at::Tensor`. An
  /// int is a float, too, rounded as Python's float() rounds it; a real tensor
  /// of one element is its number.
  /// Errors: throws kMismatch for another type, and for a number outside T,
  /// with the place, what was found and a hint.
  template <class T>
  [[nodiscard]] T to() const {
    return FromValue<T>::get(*this);
  }

  /// How many entries or elements a dict, list, tuple or set has.
  /// Errors: throws kMismatch for another type.
  [[nodiscard]] std::int64_t size() const;
  /// Whether this is a dict with the key.
  [[nodiscard]] bool contains(std::string_view key) const;
  template <IntegerType T>
  [[nodiscard]] bool contains(T key) const {
    return contains_key(Value(key));
  }
  /// The keys of a dict in order, as text. Errors: throws kMismatch if this is
  /// no dict.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Keys and values of a dict in order. Errors: as `keys`.
  [[nodiscard]] std::vector<std::pair<Value, Entry>> items() const;
  /// The elements of a list, tuple or set; the keys of a dict, as in Python.
  /// Errors: throws kMismatch for another type.
  [[nodiscard]] EntryIterator begin() const;
  [[nodiscard]] std::default_sentinel_t end() const noexcept {
    return {};
  }

 private:
  friend class EntryIterator;
  [[nodiscard]] Entry at(const Value& key) const;
  [[nodiscard]] bool contains_key(const Value& key) const;
  [[nodiscard]] Entry below(std::string_view key, Value value) const;

  std::string place_ = {};
  std::shared_ptr<const std::string> file_ = {};
};

/// Goes through a value. Ownership: holds it; the reference of `*` is valid up
/// to the next `++`.
class EntryIterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard's names
  using iterator_concept = std::input_iterator_tag;
  using value_type = Entry;
  using difference_type = std::ptrdiff_t;
  // NOLINTEND(readability-identifier-naming)

  explicit EntryIterator(Entry container);
  const Entry& operator*() const& noexcept {
    return current_;
  }
  Entry operator*() && noexcept {
    return std::move(current_);
  }
  const Entry* operator->() const noexcept {
    return &current_;
  }
  EntryIterator& operator++();
  void operator++(int) {
    ++*this;
  }
  friend bool operator==(
      const EntryIterator& it,
      std::default_sentinel_t /*end*/) noexcept {
    return it.index_ == it.size_;
  }

 private:
  void find_current();

  Entry container_;
  Entry current_ = {};
  std::size_t index_ = 0;
  std::size_t size_ = 0;
};

template <IntegerType T>
Entry Value::operator[](T index) const {
  return Entry(*this)[index];
}
template <IntegerType T>
bool Value::contains(T key) const {
  return Entry(*this).contains(key);
}

namespace internal {
/// A key of a dict, with a place that says so.
Entry key_of(const Entry& dict, Value key);
/// "its keys are epoch, best, ...": the first of them.
std::string some_keys(const std::vector<std::string>& keys);
/// Throws kMismatch: "'epoch': expected EXPECTED, got str 'ten'".
[[noreturn]] void raise_type(const Entry& entry, std::string_view expected);
} // namespace internal

template <class T>
T Value::to() const {
  return Entry(*this).to<T>();
}

} // namespace lockstep::ckpt
#pragma GCC visibility pop
