// SPDX-License-Identifier: BSD-3-Clause
//
// What the errors of a backend mean.
#include <algorithm>
#include <array>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/watch/flight_recorder.h"

namespace lockstep::dist::internal {
namespace {

/// How a backend begins to refuse a type of elements, and what that means.
struct RefusedType {
  std::string_view begin = {};
  std::string_view meaning = {};
};

constexpr std::array kRefusedTypes{
    RefusedType{
        "Invalid scalar type",
        "the backend does not carry such elements"},
    RefusedType{
        "all_reduce does not support",
        "complex numbers can only be added up"},
    RefusedType{
        "the backend shm cannot reduce",
        "the backend moves such elements, and joins none in this way"}};

/// Null if the text is of something else.
const RefusedType* refused_type(std::string_view text) {
  const auto* const found =
      std::ranges::find_if(kRefusedTypes, [&](const RefusedType& refused) {
        return text.starts_with(refused.begin);
      });
  return found == kRefusedTypes.end() ? nullptr : found;
}

} // namespace

// Gloo: "[FILE:LINE] Connection closed by peer [HOST]:PORT. This is typically
// ...": what happened stays.
std::string text_of(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text =
      ours == nullptr ? error.what() : ours->what_without_backtrace();
  const auto place_end = text.find("] ");
  if (text.starts_with("[/") && place_end != std::string::npos) {
    text.erase(0, place_end + 2);
  }
  return text.substr(0, text.find(". This is typically"));
}

bool is_timeout_text(const std::string& text) {
  return text.find("imed out") != std::string::npos ||
         text.find("imeout") != std::string::npos;
}

bool ends_group(const std::exception& error) {
  return refused_type(text_of(error)) == nullptr;
}

bool ends_group(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return ends_group(exception);
  } catch (...) {
    return true;
  }
}

std::optional<Error> own_mistake(
    std::string_view op,
    const std::exception& error,
    std::string_view dtype) {
  if (dynamic_cast<const c10::Error*>(&error) == nullptr ||
      dynamic_cast<const c10::DistError*>(&error) != nullptr ||
      is_timeout_text(error.what())) {
    return std::nullopt;
  }
  std::string text = text_of(error);
  const RefusedType* const refused = refused_type(text);
  if (refused != nullptr && !dtype.empty()) {
    text = format("{} of {}: {}", op, dtype, refused->meaning);
  }
  const bool has_unused =
      text.starts_with("Expected to have finished reduction");
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = format("dist.{}", op),
      .message = std::move(text),
      .hint = has_unused ? "set find_unused_parameters or static_graph in "
                           "DistributedDataParallelOptions"
              : refused == nullptr
                  ? "the other ranks may wait for this one"
                  : "this backend does not carry such elements: convert the "
                    "tensor first",
      .detail = "E_COLLECTIVE_ARGUMENT"};
}

} // namespace lockstep::dist::internal
