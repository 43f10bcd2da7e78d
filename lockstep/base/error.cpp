// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/error.h"

#include <array>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using enum ErrorCode;

constexpr std::array kTable{
    ErrorInfo{
        kMismatch,
        "kMismatch",
        "two sides differ, or a check found something",
        1,
        "kmismatch"},
    ErrorInfo{
        kInvalidArgument,
        "kInvalidArgument",
        "bad flag, option or argument",
        2,
        "kinvalidargument"},
    ErrorInfo{
        kCorrupt,
        "kCorrupt",
        "bytes break the rules of the format",
        3,
        "kcorrupt"},
    ErrorInfo{
        kUnsupported,
        "kUnsupported",
        "valid file, feature we do not read",
        3,
        "kunsupported"},
    ErrorInfo{
        kUnsafe,
        "kUnsafe",
        "refused: it would run code or exceed a limit",
        3,
        "kunsafe"},
    ErrorInfo{
        kNotFound,
        "kNotFound",
        "a named file, record or key does not exist",
        4,
        "knotfound"},
    ErrorInfo{
        kIo,
        "kIo",
        "the system failed: no space, no permission, read error",
        4,
        "kio"},
    ErrorInfo{
        kUnavailable,
        "kUnavailable",
        "device, backend or program not in this build or machine",
        5,
        "kunavailable"},
    ErrorInfo{kInternal, "kInternal", "our bug", 70, "kinternal"},
    ErrorInfo{
        kInterrupted,
        "kInterrupted",
        "stopped on request after saving; can resume",
        75,
        "kinterrupted"},
    ErrorInfo{
        kTimeout,
        "kTimeout",
        "a peer or device did not answer in time",
        124,
        "ktimeout"},
};

} // namespace

std::span<const ErrorInfo> error_table() {
  return kTable;
}

const ErrorInfo& error_info(ErrorCode code) {
  return kTable.at(static_cast<std::size_t>(code));
}

std::string to_string(const Error& error) {
  std::string place = error.path;
  const auto add = [&place](const std::string& part) {
    place += place.empty() ? part : ", " + part;
  };
  if (!error.record.empty()) {
    add("record " + error.record);
  }
  if (error.offset) {
    add(format("offset {:#x}", *error.offset));
  }
  std::string text;
  if (!error.op.empty()) {
    text += "[" + error.op + "] ";
  }
  text += error.message;
  if (!place.empty()) {
    text += " (" + place + ")";
  }
  if (!text.ends_with('.') && !text.ends_with(". ")) {
    text += '.';
  }
  if (!error.hint.empty()) {
    text += text.ends_with(' ') ? "" : " ";
    text += "Hint: " + error.hint;
    text += error.hint.ends_with('.') || error.hint.ends_with('?') ? "" : ".";
  }
  return text;
}

Exception::Exception(Error error)
    : error_(std::move(error)), text_(to_string(error_)) {}

void raise(Error error) {
  throw Exception(std::move(error));
}

namespace internal {

void ErrorDeleter::operator()(Error* error) const noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the deleter of ErrorPtr
  delete error;
}

ErrorPtr make_error_ptr(Error error) {
  return ErrorPtr(new Error(std::move(error)));
}

void check_failed(const char* expression, const char* file, int line) {
  raise(
      {.code = ErrorCode::kInternal,
       .op = "lockstep.check",
       .message = format("'{}' does not hold at {}:{}", expression, file, line),
       .hint = "this is a bug in Lockstep; please report it"});
}

} // namespace internal
} // namespace lockstep
