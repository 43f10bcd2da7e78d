// SPDX-License-Identifier: BSD-3-Clause
//
// What went wrong, in one form for every part of Lockstep. Torch-free folders
// return `Result<T>`, a value or an `Error`, with the names of std::expected;
// torch folders throw `Exception`, which carries the same `Error`.
//   Result<int> r = parse(text);
//   if (!r) { return r.error(); }
//   use(*r);                       // or r.value(), which throws Exception
// `to_string` is the only place that builds the text:
//   [op] message (path, record R, offset 0xN). Hint: what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#pragma GCC visibility push(default)
namespace lockstep {

/// The class of an error. Decides the exit code of a program.
enum class ErrorCode {
  kMismatch,
  kInvalidArgument,
  kCorrupt,
  kUnsupported,
  kUnsafe,
  kNotFound,
  kIo,
  kUnavailable,
  kInternal,
  kInterrupted,
  kTimeout,
};

/// One row of the error table; `docs/errors.md` is held equal by a test.
struct ErrorInfo {
  ErrorCode code = ErrorCode::kInternal;
  /// As in the source: "kCorrupt".
  std::string_view name = {};
  /// One line for people.
  std::string_view meaning = {};
  /// Exit status of a program that ends with this error.
  int exit_code = 70;
  /// Heading in `docs/errors.md`, without '#': "kcorrupt".
  std::string_view anchor = {};
};

/// All rows, in the order of `ErrorCode`.
std::span<const ErrorInfo> error_table();

/// The row of `code`.
const ErrorInfo& error_info(ErrorCode code);

/// A value that describes one failure. Empty parts are left out of the text.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  /// Operation, "folder.verb": "ckpt.read".
  std::string op = {};
  /// What happened, then "expected X, got Y".
  std::string message = {};
  /// What to do next, when we know: a command or a field.
  std::string hint = {};
  /// File, if any.
  std::string path = {};
  /// Record inside the file, if any.
  std::string record = {};
  /// Units: bytes from the record's (or the file's) start.
  std::optional<std::uint64_t> offset = {};
  /// Finer name inside the class: "E_CRC". Shown by `--json` and `explain`.
  std::string detail = {};

  friend bool operator==(const Error&, const Error&) = default;
};

/// `[op] message (path, record R, offset 0xN). Hint: what to do.`
std::string to_string(const Error& error);

/// Carries an `Error` through code that throws.
class [[gnu::visibility("default")]] Exception : public std::exception {
 public:
  explicit Exception(Error error);
  [[nodiscard]] const Error& error() const noexcept {
    return error_;
  }
  /// `to_string(error())`; valid as long as the exception.
  [[nodiscard]] const char* what() const noexcept override {
    return text_.c_str();
  }

 private:
  Error error_;
  std::string text_;
};

/// Throws `Exception(error)`.
[[noreturn]] void raise(Error error);

namespace internal {
[[noreturn]] void
check_failed(const char* expression, const char* file, int line);
} // namespace internal

} // namespace lockstep

/// Stops on a bug of ours (throws `kInternal`). No input may reach it.
#define LOCKSTEP_CHECK(condition) \
  ((condition)                    \
       ? static_cast<void>(0)     \
       : ::lockstep::internal::check_failed(#condition, __FILE__, __LINE__))

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
#pragma GCC visibility pop
