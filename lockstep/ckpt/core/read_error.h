// SPDX-License-Identifier: BSD-3-Clause
//
// The errors of reading a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::ckpt {

/// What is wrong with a file; the detail names it for programs ("E_OPCODE").
Error read_error(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string hint = {});

/// The same of bytes that are wrong: kCorrupt; with the archive's record, and
/// the place in it or in the file, if there is one.
Error corrupt_file(
    std::string_view detail,
    std::string message,
    std::string record = {},
    std::optional<std::uint64_t> offset = {});

/// `result`, whose error names the file, unless it names one.
template <class T>
Result<T> in_file(Result<T> result, std::string_view path) {
  if (!result && result.error().path.empty()) {
    result.error().path = path;
  }
  return result;
}

/// The same of the record.
template <class T>
Result<T> in_record(Result<T> result, std::string_view record) {
  if (!result && result.error().record.empty()) {
    result.error().record = record;
  }
  return result;
}

/// `result`, whose error says what it is about: "tensor 'w': ...".
template <class T>
Result<T> about(Result<T> result, const std::string& what) {
  if (!result) {
    result.error().message.insert(0, what + ": ");
  }
  return result;
}

} // namespace lockstep::ckpt
