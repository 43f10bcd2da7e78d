// SPDX-License-Identifier: BSD-3-Clause
//
// What went wrong, in one form for every part of Lockstep. Torch-free folders
// return `Result<T>` (result.h); torch folders throw `Exception`, which carries
// the same `Error`. `to_string` is the only place that builds the text:
//   [op] message (path, record R, offset 0xN). Hint: what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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
