// SPDX-License-Identifier: BSD-3-Clause
//
// What forward can change of an argument, and whether it changed what is no
// tensor in it.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep::structure {

template <class F>
struct ParametersOf;
template <class R, class M, class... Ps>
struct ParametersOf<R (M::*)(Ps...)> {
  using Types = std::tuple<Ps...>;
};
template <class R, class M, class... Ps>
struct ParametersOf<R (M::*)(Ps...) const> : ParametersOf<R (M::*)(Ps...)> {};

/// The type of parameter `I` of `M::forward`; void where it is not one function
/// but several, or a template.
template <class M, std::size_t I>
struct ParameterOf {
  using Type = void;
};
template <class M, std::size_t I>
  requires requires {
    typename std::
        tuple_element_t<I, typename ParametersOf<decltype(&M::forward)>::Types>;
  }
struct ParameterOf<M, I> {
  using Type = std::
      tuple_element_t<I, typename ParametersOf<decltype(&M::forward)>::Types>;
};

/// Whether parameter `I` of `M::forward` is known to be a `T&`.
template <class M, std::size_t I, class P = typename ParameterOf<M, I>::Type>
inline constexpr bool kIsReference =
    std::is_lvalue_reference_v<P> &&
    !std::is_const_v<std::remove_reference_t<P>>;

/// Whether parameter `I` of `M::forward` is known to take a `T` without being
/// able to change it: as a value or a `const T&`.
template <
    class M,
    std::size_t I,
    class T,
    class P = typename ParameterOf<M, I>::Type>
inline constexpr bool kIsRead =
    !std::is_void_v<P> && !kIsReference<M, I> && !std::is_pointer_v<T> &&
    std::is_convertible_v<const T&, P>;

template <class T>
inline constexpr bool kIsTensorPointer = false;
template <>
inline constexpr bool kIsTensorPointer<at::Tensor*> = true;
template <>
inline constexpr bool kIsTensorPointer<std::vector<at::Tensor>*> = true;

template <class T>
inline constexpr bool kIsWhole = false;
template <class T>
inline constexpr bool kIsWhole<Whole<T>> = true;

/// An argument that is a variable of the caller, which forward may change.
template <class Arg>
inline constexpr bool kIsVariable =
    std::is_lvalue_reference_v<Arg> &&
    std::is_same_v<std::remove_reference_t<Arg>, std::decay_t<Arg>> &&
    !kIsWhole<std::decay_t<Arg>>;

/// Values whose changes can be seen.
template <class T>
inline constexpr bool kIsComparable =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>;
template <>
inline constexpr bool kIsComparable<std::string> = true;
template <class T>
inline constexpr bool kIsComparable<std::optional<T>> = kIsComparable<T>;
template <class T>
inline constexpr bool kIsComparable<std::vector<T>> = kIsComparable<T>;
template <class T, std::size_t N>
inline constexpr bool kIsComparable<std::array<T, N>> = kIsComparable<T>;
template <class T>
inline constexpr bool kIsComparable<std::list<T>> = kIsComparable<T>;
template <class T>
inline constexpr bool kIsComparable<std::deque<T>> = kIsComparable<T>;
template <class T>
inline constexpr bool kIsComparable<std::set<T>> = kIsComparable<T>;
template <class T>
inline constexpr bool kIsComparable<std::unordered_set<T>> = kIsComparable<T>;
template <class A, class B>
inline constexpr bool kIsComparable<std::pair<A, B>> =
    kIsComparable<A> && kIsComparable<B>;
template <class... Ts>
inline constexpr bool kIsComparable<std::tuple<Ts...>> =
    (kIsComparable<Ts> && ...);
template <class... Ts>
inline constexpr bool kIsComparable<std::variant<Ts...>> =
    (kIsComparable<Ts> && ...);
template <>
inline constexpr bool kIsComparable<std::monostate> = true;
template <class T>
inline constexpr bool kIsComparable<std::complex<T>> = true;
template <class K, class T>
inline constexpr bool kIsComparable<std::map<K, T>> =
    kIsComparable<K> && kIsComparable<T>;
template <class K, class T>
inline constexpr bool kIsComparable<std::unordered_map<K, T>> =
    kIsComparable<K> && kIsComparable<T>;

/// NaN is not equal to itself.
template <class T>
bool is_other(const T& now, const T& before) {
  if constexpr (std::is_floating_point_v<T>) {
    return now != before && !(std::isnan(now) && std::isnan(before));
  } else {
    return now != before;
  }
}

/// The parts of an argument that are no tensors, to compare with those of
/// another of its type. Ownership: borrows them.
class Values {
 public:
  template <class T>
  explicit Values(const T& argument) {
    visit_tensors(argument, Visitor{*this});
  }
  [[nodiscard]] bool is_empty() const {
    return parts_.empty() && !has_unknown_;
  }
  [[nodiscard]] bool is_other_than(const Values& before) const;
  /// Whether there is more, of which nobody knows how to compare it.
  [[nodiscard]] bool has_unknown() const {
    return has_unknown_;
  }

 private:
  struct Part {
    const void* value = nullptr;
    bool (*is_other)(const void* now, const void* before) = nullptr;
  };
  struct Visitor {
    void operator()(const at::Tensor& /*tensor*/) const {}
    void unnamed() const {
      values.has_unknown_ = true;
    }
    template <class T>
    void value(const T& value) const {
      if constexpr (kIsComparable<T>) {
        values.parts_.push_back(
            {.value = static_cast<const void*>(&value),
             .is_other = [](const void* now, const void* before) {
               return structure::is_other(
                   *static_cast<const T*>(now),
                   *static_cast<const T*>(before));
             }});
      } else {
        values.has_unknown_ = true;
      }
    }
    Values& values;
  };

  std::vector<Part> parts_ = {};
  bool has_unknown_ = false;
};

} // namespace lockstep::structure
#pragma GCC visibility pop
