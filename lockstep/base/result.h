// SPDX-License-Identifier: BSD-3-Clause
//
// `Result<T>`: a value or an `Error`, with the names of std::expected.
//   Result<int> r = parse(text);
//   if (!r) { return r.error(); }
//   use(*r);                       // or r.value(), which throws Exception
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "lockstep/base/error.h"

namespace lockstep {

namespace internal {

// Errors are rare and large: on the heap they cost a result one pointer, and
// whoever hands them on moves that.
struct ErrorDeleter {
  void operator()(Error* error) const noexcept;
};
using ErrorPtr = std::unique_ptr<Error, ErrorDeleter>;
ErrorPtr make_error_ptr(Error error);

} // namespace internal

/// Specialised to true for a type whose parts people loop over: then `->` of a
/// temporary result does not compile. In `for (auto& x : f()->items)` the
/// result would end before the loop begins.
template <class T>
inline constexpr bool kNamesResult = false;

/// A `T`, or the `Error` that kept it from being made. Is moved, not copied.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{...};` read well.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Result(Error error)
      : state_(
            std::in_place_index<1>,
            internal::make_error_ptr(std::move(error))) {}
  // NOLINTNEXTLINE(google-explicit-constructor): for LOCKSTEP_TRY
  Result(internal::ErrorPtr error) noexcept
      : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept {
    return state_.index() == 0;
  }
  explicit operator bool() const noexcept {
    return has_value();
  }
  /// The value. Errors: throws `Exception` if there is none.
  T& value() & {
    return check(), std::get<0>(state_);
  }
  const T& value() const& {
    return check(), std::get<0>(state_);
  }
  /// By value, so that `for (auto& x : f().value())` does not dangle.
  T value() && {
    return check(), std::get<0>(std::move(state_));
  }
  /// The value, as `value()`.
  T& operator*() & {
    return value();
  }
  const T& operator*() const& {
    return value();
  }
  T operator*() && {
    return std::move(*this).value();
  }
  T* operator->() & {
    return &value();
  }
  const T* operator->() const& {
    return &value();
  }
  T* operator->() && {
    return &value();
  }
  /// Name the result first: it ends with this statement.
  T* operator->() &&
        requires(kNamesResult<T>)
      = delete;
  /// The error, unchecked: call after `if (!r)`.
  [[nodiscard]] const Error& error() const& noexcept {
    return **std::get_if<1>(&state_);
  }
  [[nodiscard]] Error& error() & noexcept {
    return **std::get_if<1>(&state_);
  }
  [[nodiscard]] Error&& error() && noexcept {
    return std::move(**std::get_if<1>(&state_));
  }
  /// For LOCKSTEP_TRY: the error as another result takes it.
  [[nodiscard]] internal::ErrorPtr take_error() && noexcept {
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  void check() const {
    if (!has_value()) {
      raise(error());
    }
  }
  std::variant<T, internal::ErrorPtr> state_;
};

/// Success, or an `Error`. `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return Error{...};`
  Result(Error error) : error_(internal::make_error_ptr(std::move(error))) {}
  // NOLINTNEXTLINE(google-explicit-constructor): for LOCKSTEP_TRY
  Result(internal::ErrorPtr error) noexcept : error_(std::move(error)) {}

  [[nodiscard]] bool has_value() const noexcept {
    return error_ == nullptr;
  }
  explicit operator bool() const noexcept {
    return has_value();
  }
  void value() const {
    if (!has_value()) {
      raise(*error_);
    }
  }
  [[nodiscard]] const Error& error() const& noexcept {
    return *error_;
  }
  [[nodiscard]] Error& error() & noexcept {
    return *error_;
  }
  /// For LOCKSTEP_TRY: the error as another result takes it.
  [[nodiscard]] internal::ErrorPtr take_error() && noexcept {
    return std::move(error_);
  }

 private:
  internal::ErrorPtr error_;
};

using Status = Result<void>;

} // namespace lockstep

#define LOCKSTEP_INTERNAL_PASTE(a, b) a##b
#define LOCKSTEP_INTERNAL_CONCAT(a, b) LOCKSTEP_INTERNAL_PASTE(a, b)

/// Returns the error of `expression` (a `Result`) from this function, if any;
/// it is moved out of a variable.
#define LOCKSTEP_TRY(expression)                                     \
  do {                                                               \
    if (auto&& lockstep_status_ = (expression); !lockstep_status_) { \
      return std::move(lockstep_status_).take_error();               \
    }                                                                \
  } while (false)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none
/// `LOCKSTEP_ASSIGN(auto x, f());`: x = value of `f()`, or returns its error.
#define LOCKSTEP_ASSIGN(declaration, expression)            \
  LOCKSTEP_INTERNAL_ASSIGN(                                 \
      LOCKSTEP_INTERNAL_CONCAT(lockstep_result_, __LINE__), \
      declaration,                                          \
      expression)
#define LOCKSTEP_INTERNAL_ASSIGN(result, declaration, expression) \
  auto result = (expression);                                     \
  if (!result) {                                                  \
    return std::move(result).take_error();                        \
  }                                                               \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
