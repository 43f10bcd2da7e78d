// SPDX-License-Identifier: BSD-3-Clause
//
// What values hold beside numbers, texts, tensors and containers, and what the
// accessors of a value give: it, or nothing if the value is of another type.
// `*` and `->` of nothing throw and say what the value is instead.
//   if (auto epoch = value.as_int()) { use(*epoch); }
//   double best = *file["best"].as_float();      // throws for a str
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/ckpt/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// A number's type: no bool and no character.
template <class T>
concept IntegerType =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

struct None {
  friend bool operator==(None, None) = default;
};
/// Integer beyond 64 bits: two's complement, little-endian, minimal length.
struct BigInt {
  std::string bytes = {};
};
struct Bytes {
  std::string data = {};
};
struct Complex {
  double real = 0;
  double imag = 0;
};
/// `torch.Size`, written as such.
struct Size {
  std::vector<std::int64_t> sizes = {};
};
/// `torch.device('cuda', 1)`; index -1 if absent.
struct Device {
  std::string type = "cpu";
  int index = -1;
};
/// `torch.float32` as a value.
struct DTypeValue {
  DType dtype = DType::kFloat32;
};

/// Class name of the node that stands for a value inside itself; its only
/// argument counts the levels up to that value.
inline constexpr const char* kReferenceGlobal = "<ref>";

/// What a value is (`Value::Type`). The order groups how it is held.
enum class ValueType : std::uint8_t {
  // Inside the value.
  kNone,
  kBool,
  kInt,
  kFloat,
  kDType,
  // Shared and never changed.
  kBigInt,
  kString,
  kBytes,
  kComplex,
  kSize,
  kDevice,
  // Shared.
  kStorage,
  kTensor,
  // Shared, with values in them.
  kList,
  kTuple,
  kSet,
  kDict,
  kObject,
};

namespace internal {

/// What was asked of a value, for the error.
struct Asked {
  /// Of the value; kNone if there is none.
  ValueType got = ValueType::kNone;
  /// What it was asked for; kNone for an entry.
  ValueType wanted = ValueType::kNone;
};

/// Throws kInvalidArgument: "expected a float, got a str"; kNotFound for an
/// entry.
[[noreturn]] void raise_absent(Asked asked);

} // namespace internal

/// A pointer into a value, or null.
/// Ownership: the value's; it must outlive this. Errors: `*` and `->` of null
/// throw kInvalidArgument, those of an entry that is not there kNotFound.
template <class T>
class Ref {
 public:
  // Implicit on purpose: it stands for a pointer.
  // NOLINTBEGIN(google-explicit-constructor)
  Ref(std::nullptr_t) noexcept {}
  Ref(T* pointer, internal::Asked asked) noexcept
      : pointer_(pointer), asked_(asked) {}
  operator T*() const noexcept {
    return pointer_;
  }
  // NOLINTEND(google-explicit-constructor)
  T& operator*() const {
    return *checked();
  }
  T* operator->() const {
    return checked();
  }

 private:
  T* checked() const {
    if (pointer_ == nullptr) {
      internal::raise_absent(asked_);
    }
    return pointer_;
  }

  T* pointer_ = nullptr;
  internal::Asked asked_ = {};
};

/// A copy of what a value holds, or nothing: what the accessors of a temporary
/// value give, so that nothing points into it. What the copy contains is shared
/// with the tree. `->` needs a name:
///   auto dict = load(path).as_dict();
///   for (auto& [key, value] : dict->items) { ... }
/// Errors: as those of `Ref`.
template <class T>
class Copy : public std::optional<T> {
 public:
  Copy(std::optional<T> value, internal::Asked asked)
      : std::optional<T>(std::move(value)), asked_(asked) {}

  const T& operator*() const& {
    check();
    return std::optional<T>::operator*();
  }
  T& operator*() & {
    check();
    return std::optional<T>::operator*();
  }
  T operator*() && {
    check();
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it is checked
    return *static_cast<std::optional<T>&&>(*this);
  }
  const T* operator->() const& {
    return &**this;
  }
  T* operator->() & {
    return &**this;
  }
  /// Name the value first: it ends with this statement.
  T* operator->() && = delete;

  friend bool operator==(const Copy& copy, std::nullptr_t) noexcept {
    return !copy.has_value();
  }
  friend bool operator==(const Copy& a, const Copy& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  void check() const {
    if (!this->has_value()) {
      internal::raise_absent(asked_);
    }
  }

  internal::Asked asked_ = {};
};

} // namespace lockstep::ckpt
#pragma GCC visibility pop
