// SPDX-License-Identifier: BSD-3-Clause
//
// Values from and to the types of C++: what `Value(...)` takes and what
// `Entry::to<T>()` gives.
//   const Value sizes = std::vector{64, 128};
//   const auto again = sizes.to<std::vector<int>>();
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/ckpt/entry.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {
namespace internal {

/// All of them throw kMismatch for another type. A tensor of one element is
/// its number.
bool bool_in(const Entry& entry);
std::int64_t
integer_in(const Entry& entry, std::int64_t low, std::int64_t high);
std::uint64_t unsigned_in(const Entry& entry, std::uint64_t high);
double float_in(const Entry& entry);
std::complex<double> complex_in(const Entry& entry);
/// Elements of a list, tuple, set or torch.Size. `count`: how many there must
/// be; any number without it.
std::vector<Entry> elements_in(
    const Entry& entry,
    std::optional<std::size_t> count = {});

} // namespace internal

template <>
struct FromValue<bool> {
  static bool get(const Entry& entry) {
    return internal::bool_in(entry);
  }
};

template <IntegerType T>
struct FromValue<T> {
  static T get(const Entry& entry) {
    constexpr T kHigh = std::numeric_limits<T>::max();
    if constexpr (std::unsigned_integral<T>) {
      return static_cast<T>(internal::unsigned_in(entry, kHigh));
    } else {
      constexpr T kLow = std::numeric_limits<T>::min();
      return static_cast<T>(internal::integer_in(entry, kLow, kHigh));
    }
  }
};

template <std::floating_point T>
struct FromValue<T> {
  static T get(const Entry& entry) {
    const double number = internal::float_in(entry);
    if (std::isfinite(number) &&
        std::abs(number) > static_cast<double>(std::numeric_limits<T>::max())) {
      internal::raise_type(entry, "a number that fits");
    }
    return static_cast<T>(number);
  }
};

template <std::floating_point T>
struct FromValue<std::complex<T>> {
  static std::complex<T> get(const Entry& entry) {
    return std::complex<T>(internal::complex_in(entry));
  }
};

template <>
struct FromValue<std::string> {
  static std::string get(const Entry& entry) {
    const std::string* text = entry.as_string();
    if (text == nullptr) {
      internal::raise_type(entry, "a str");
    }
    return *text;
  }
};

template <>
struct FromValue<Value> {
  static Value get(const Entry& entry) {
    return entry;
  }
};

template <>
struct FromValue<Entry> {
  static Entry get(const Entry& entry) {
    return entry;
  }
};

template <>
struct FromValue<Tensor> {
  static Tensor get(const Entry& entry) {
    const Tensor* tensor = entry.as_tensor();
    if (tensor == nullptr) {
      internal::raise_type(entry, "a tensor");
    }
    return *tensor;
  }
};

template <class T>
struct FromValue<std::optional<T>> {
  static std::optional<T> get(const Entry& entry) {
    return entry.is_none() ? std::nullopt
                           : std::optional<T>(entry.template to<T>());
  }
};

template <class T>
struct FromValue<std::vector<T>> {
  static std::vector<T> get(const Entry& entry) {
    std::vector<T> result;
    const std::vector<Entry> elements = internal::elements_in(entry);
    result.reserve(elements.size());
    for (const Entry& element : elements) {
      result.push_back(element.template to<T>());
    }
    return result;
  }
};

template <class T, std::size_t N>
struct FromValue<std::array<T, N>> {
  static std::array<T, N> get(const Entry& entry) {
    const std::vector<Entry> elements = internal::elements_in(entry, N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<T, N>{elements[I].template to<T>()...};
    }(std::make_index_sequence<N>());
  }
};

/// std::pair and std::tuple.
template <class T>
// NOLINTNEXTLINE(modernize-type-traits): tuple_size_v fails for other types
  requires requires { std::tuple_size<T>::value; }
struct FromValue<T> {
  static T get(const Entry& entry) {
    constexpr std::size_t kSize = std::tuple_size_v<T>;
    const std::vector<Entry> elements = internal::elements_in(entry, kSize);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return T{elements[I].template to<std::tuple_element_t<I, T>>()...};
    }(std::make_index_sequence<kSize>());
  }
};

/// std::map and std::unordered_map.
template <class T>
  requires requires(
      T map,
      typename T::key_type key,
      typename T::mapped_type v) {
    map.try_emplace(std::move(key), std::move(v));
  }
struct FromValue<T> {
  static T get(const Entry& entry) {
    T map;
    for (const auto& [key, value] : entry.items()) {
      const Entry name = internal::key_of(entry, key);
      const bool is_new = map.try_emplace(
                                 name.template to<typename T::key_type>(),
                                 value.template to<typename T::mapped_type>())
                              .second;
      if (!is_new) {
        internal::raise_type(name, "keys that differ");
      }
    }
    return map;
  }
};

// The other way.

/// None for nothing. A value that may be missing has to say what it is then.
template <std::convertible_to<Value> T>
  requires(!std::same_as<T, Value>)
struct ToValue<std::optional<T>> {
  static Value get(const std::optional<T>& value) {
    return value ? Value(*value) : Value();
  }
};

/// A list.
template <std::convertible_to<Value> T>
struct ToValue<std::vector<T>> {
  static Value get(const std::vector<T>& values) {
    return List{.items = {values.begin(), values.end()}};
  }
};
template <std::convertible_to<Value> T, std::size_t N>
struct ToValue<std::array<T, N>> {
  static Value get(const std::array<T, N>& values) {
    return List{.items = {values.begin(), values.end()}};
  }
};

/// A tuple.
template <std::convertible_to<Value>... T>
struct ToValue<std::tuple<T...>> {
  static Value get(const std::tuple<T...>& values) {
    return std::apply(
        [](const T&... value) { return Value::tuple({value...}); },
        values);
  }
};
template <std::convertible_to<Value> A, std::convertible_to<Value> B>
struct ToValue<std::pair<A, B>> {
  static Value get(const std::pair<A, B>& values) {
    return Value::tuple({values.first, values.second});
  }
};

/// A dict, in the order of the keys.
template <std::convertible_to<Value> K, std::convertible_to<Value> T>
struct ToValue<std::map<K, T>> {
  static Value get(const std::map<K, T>& map) {
    Dict dict;
    for (const auto& [key, value] : map) {
      dict.items.emplace_back(key, value);
    }
    return dict;
  }
};
template <std::convertible_to<Value> K, std::convertible_to<Value> T>
struct ToValue<std::unordered_map<K, T>> {
  static Value get(const std::unordered_map<K, T>& map) {
    return std::map<K, T>(map.begin(), map.end());
  }
};

template <std::floating_point T>
struct ToValue<std::complex<T>> {
  static Value get(const std::complex<T>& value) {
    return Complex{.real = value.real(), .imag = value.imag()};
  }
};

} // namespace lockstep::ckpt
#pragma GCC visibility pop
