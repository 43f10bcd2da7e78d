// SPDX-License-Identifier: BSD-3-Clause
//
// Where the tensors are in a value, said for one type at a time. LibTorch's and
// the standard library's containers are known (structure.h); a struct of the
// user's says which members hold tensors:
//   struct ImageBatch { at::Tensor images, labels; std::string split; };
//   template <>
//   struct lockstep::Structure<ImageBatch>
//       : lockstep::Fields<&ImageBatch::images, &ImageBatch::labels> {};
#pragma once

#include <any>
#include <chrono>
#include <complex>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/core/TensorOptions.h>

#include "lockstep/base/strings.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// A type without tensors inside, or whose tensors are nobody's business: each
/// replica gets a copy of the value as it is.
///   template <>
///   struct lockstep::Structure<Config> : lockstep::AsIs {};
struct AsIs {
  static constexpr bool kHasTensors = false;
  static constexpr bool kIsJoinable = false;
  template <class V, class F>
  static void visit(V& /*value*/, const F& /*f*/) {}
  template <class T>
  static std::string describe(const T& /*value*/) {
    return "value";
  }
};

namespace structure {
/// Numbers, texts and the like. Of other classes nobody knows what they hold.
template <class T>
inline constexpr bool kIsPlain = !std::is_class_v<T> && !std::is_union_v<T>;
template <>
inline constexpr bool kIsPlain<std::string> = true;
template <>
inline constexpr bool kIsPlain<std::string_view> = true;
template <>
inline constexpr bool kIsPlain<std::nullopt_t> = true;
template <>
inline constexpr bool kIsPlain<std::monostate> = true;
template <class T>
inline constexpr bool kIsPlain<std::complex<T>> = true;
template <class T>
inline constexpr bool kIsPlain<c10::complex<T>> = true;
template <>
inline constexpr bool kIsPlain<c10::Half> = true;
template <>
inline constexpr bool kIsPlain<c10::BFloat16> = true;
template <>
inline constexpr bool kIsPlain<c10::Scalar> = true;
template <>
inline constexpr bool kIsPlain<c10::Device> = true;
template <>
inline constexpr bool kIsPlain<c10::TensorOptions> = true;
template <>
inline constexpr bool kIsPlain<caffe2::TypeMeta> = true;
template <>
inline constexpr bool kIsPlain<at::Generator> = true;
template <class Rep, class Period>
inline constexpr bool kIsPlain<std::chrono::duration<Rep, Period>> = true;
template <class Clock, class Duration>
inline constexpr bool kIsPlain<std::chrono::time_point<Clock, Duration>> = true;
} // namespace structure

/// How to find the tensors in a `T`; this one is for values, which have none.
/// A specialisation has
/// - `kHasTensors`: there may be tensors in a T,
/// - `kIsJoinable`: nothing but tensors, so that the T of several replicas can
///   be made one,
/// - `visit(value, f)`: calls `f(tensor)` for each tensor, in an order that
///   depends on the structure only; `value` may be const. If it is known only
///   at run time whether a type holds numbers, its visit of a const value also
///   calls `f.number(text)` for each, where f has such a member,
/// - `describe(value)`: the structure in words, equal for values that can be
///   joined: "[tensor, tensor]",
/// - perhaps `as_sample(value)`: the value as a sample of a batch, with tensors
///   in the place of numbers.
/// Errors: does not compile for a class of which nobody has said it.
template <class T>
struct Structure : AsIs {
  static_assert(
      structure::kIsPlain<T>,
      "lockstep does not know where the tensors of this type are. Name the "
      "members that hold them: template <> struct lockstep::Structure<MyType> "
      ": lockstep::Fields<&MyType::images, &MyType::labels> {}; or give the "
      "value to each replica as it is: template <> struct "
      "lockstep::Structure<MyType> : lockstep::AsIs {}; or, in one call, "
      "lockstep::as_is(value)");
};

template <class T>
struct Structure<const T> : Structure<T> {};

template <>
struct Structure<at::Tensor> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = true;
  template <class V, class F>
  static void visit(V& tensor, const F& f) {
    f(tensor);
  }
  static std::string describe(const at::Tensor& /*tensor*/) {
    return "tensor";
  }
};

template <class T>
inline constexpr bool kHasTensors = Structure<T>::kHasTensors;
template <class T>
inline constexpr bool kIsJoinable = Structure<T>::kIsJoinable;

namespace structure {

/// Calls `f(tensor)` for each tensor; and `f.value(part)`, if there is such a
/// member, for each part that has none.
template <class V, class F>
void visit_tensors(V& value, const F& f) {
  using S = Structure<std::remove_const_t<V>>;
  if constexpr (!S::kHasTensors && requires { f.value(value); }) {
    f.value(value);
  } else {
    S::visit(value, f);
  }
}

template <class T>
std::string describe(const T& value) {
  return Structure<T>::describe(value);
}

template <class Member>
struct MemberPointer;
template <class Owner, class Member>
struct MemberPointer<Member Owner::*> {
  using MemberType = Member;
};

/// Stands for the initial value of any member.
struct AnyMember {
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the value
  operator T() const;
};

template <class T, std::size_t... I>
consteval bool takes_members(std::index_sequence<I...> /*count*/) {
  return requires { T{(static_cast<void>(I), AnyMember())...}; };
}

/// How many members `T` has at least; exact for structs without constructors
/// whose members are copied freely.
template <class T, std::size_t Count = 0>
consteval std::size_t count_members() {
  if constexpr (!std::is_aggregate_v<T>) {
    return 0;
  } else if constexpr (takes_members<T>(
                           std::make_index_sequence<Count + 1>())) {
    return count_members<T, Count + 1>();
  } else {
    return Count;
  }
}

/// What `as_is` returns: turns into the value where forward takes it.
template <class T>
struct Whole {
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the value
  operator T&() {
    return value;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the value
  operator const T&() const {
    return value;
  }
  T value;
};

} // namespace structure

/// For structs of the user's: the members that hold tensors. Other members are
/// repeated in arguments; in results they are those of replica 0.
template <auto... Members>
struct Fields {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable =
      (lockstep::kIsJoinable<
           typename structure::MemberPointer<decltype(Members)>::MemberType> &&
       ...);
  template <class V, class F>
  static void visit(V& value, const F& f) {
    (structure::visit_tensors(value.*Members, f), ...);
    if constexpr (requires { f.unnamed(); }) {
      constexpr std::size_t kNamed =
          (sizeof(typename structure::MemberPointer<
                  decltype(Members)>::MemberType) +
           ...);
      // More is left out than padding, or members that stand in it.
      if (sizeof(V) - kNamed >= alignof(V) ||
          structure::count_members<V>() > sizeof...(Members)) {
        f.unnamed();
      }
    }
  }
  template <class T>
  static std::string describe(const T& value) {
    const std::vector<std::string> parts{
        structure::describe(value.*Members)...};
    return "struct(" + join(parts, ", ") + ")";
  }
};

/// A value whose type is forgotten, and its tensors: what passes through code
/// that does not know it. Ownership: owns a copy; tensors are shared.
class AnyStructure {
 public:
  using Visit = std::function<void(at::Tensor&)>;

  /// No value.
  AnyStructure() = default;
  template <class T>
  explicit AnyStructure(T value)
      : value_(std::move(value)),
        visit_([](std::any& any, const Visit& visit) {
          structure::visit_tensors(*std::any_cast<T>(&any), visit);
        }),
        describe_([](const std::any& any) {
          return structure::describe(*std::any_cast<T>(&any));
        }) {}

  [[nodiscard]] bool is_empty() const {
    return !value_.has_value();
  }
  /// Null for a value of another type.
  template <class T>
  [[nodiscard]] const T* as() const& {
    return std::any_cast<T>(&value_);
  }
  template <class T>
  const T* as() && = delete; // it would point into what is gone
  /// Calls `visit` with each tensor.
  void visit(const Visit& visit) {
    if (!is_empty()) {
      visit_(value_, visit);
    }
  }
  /// "(tensor, [tensor])".
  [[nodiscard]] std::string describe() const {
    return is_empty() ? "nothing" : describe_(value_);
  }

 private:
  std::any value_ = {};
  void (*visit_)(std::any& value, const Visit& visit) = nullptr;
  std::string (*describe_)(const std::any& value) = nullptr;
};

/// Of a constant one, a copy is visited: its tensors are the same.
template <>
struct Structure<AnyStructure> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = false;
  template <class F>
  static void visit(AnyStructure& value, const F& f) {
    value.visit([&f](at::Tensor& tensor) { f(tensor); });
  }
  template <class F>
  static void visit(const AnyStructure& value, const F& f) {
    AnyStructure copy = value;
    copy.visit([&f](at::Tensor& tensor) { f(std::as_const(tensor)); });
  }
  static std::string describe(const AnyStructure& value) {
    return value.describe();
  }
};

template <class T>
struct Structure<structure::Whole<T>> : AsIs {};

/// One argument that each replica gets as it is, whatever its type: a config, a
/// function object, a tensor that is no batch. forward takes a `T` as usual.
///   model->forward(images, as_is(config));
/// Threads: replicas read their copies at the same time; what they share (a
/// tensor's memory, what a pointer points to) nobody may change meanwhile.
template <class T>
structure::Whole<std::decay_t<T>> as_is(T&& value) {
  return {std::forward<T>(value)};
}

} // namespace lockstep
#pragma GCC visibility pop
