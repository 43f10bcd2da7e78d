// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include "lockstep/base/strings.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep {

ReplicaError::ReplicaError(
    Error error,
    std::size_t replica,
    std::exception_ptr cause)
    : Exception(std::move(error)),
      replica_(replica),
      cause_(std::move(cause)) {}

namespace parallel {
namespace {

struct Caught {
  std::string type = {};
  Error error = {.code = ErrorCode::kInvalidArgument};
};

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
      &std::free);
  return status == 0 ? text.get() : type.name();
}

Caught describe(const std::exception_ptr& cause) {
  Caught caught;
  try {
    std::rethrow_exception(cause);
  } catch (const Exception& e) {
    caught.type = type_name(typeid(e));
    Error inner = e.error();
    caught.error.code = inner.code;
    caught.error.hint = std::exchange(inner.hint, {});
    caught.error.message = to_string(inner);
  } catch (const c10::Error& e) {
    caught.type = type_name(typeid(e));
    caught.error.message = e.what_without_backtrace();
  } catch (const std::exception& e) {
    caught.type = type_name(typeid(e));
    caught.error.message = e.what();
  } catch (...) {
    caught.type = "an object that is no std::exception";
  }
  return caught;
}

} // namespace

void rethrow_lowest(
    std::span<const std::exception_ptr> errors,
    std::span<const c10::Device> devices,
    std::string_view op) {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] == nullptr) {
      continue;
    }
    Caught caught = describe(errors[i]);
    caught.error.op = op;
    caught.error.message = format(
        "Caught {} in replica {} on device {}{}{}",
        caught.type,
        i,
        devices[i].str(),
        caught.error.message.empty() ? "" : ".\n",
        caught.error.message);
    throw ReplicaError(std::move(caught.error), i, errors[i]);
  }
}

} // namespace parallel
} // namespace lockstep
