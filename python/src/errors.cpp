// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/errors.h"

#include <exception>
#include <string>

#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

// Sets Python's current exception.
void set_python_error(const Error& error) {
  const nb::object make =
      nb::module_::import_("lockstep._errors").attr("_make");
  const ErrorInfo& info = error_info(error.code);
  nb::dict fields;
  fields["code"] =
      text(error.detail.empty() ? std::string_view(info.name) : error.detail);
  fields["name"] = text(info.name);
  fields["op"] = text(error.op);
  fields["message"] = text(error.message);
  fields["hint"] = text(error.hint);
  fields["path"] = text(error.path);
  fields["record"] = text(error.record);
  fields["offset"] = error.offset ? nb::object(nb::int_(*error.offset))
                                  : nb::object(nb::none());
  const nb::object exception = make(text(to_string(error)), fields);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

} // namespace

void raise_python(const Error& error) {
  set_python_error(error);
  throw nb::python_error();
}

void register_translator() {
  nb::register_exception_translator([](const std::exception_ptr& held, void*) {
    try {
      std::rethrow_exception(held);
    } catch (const Exception& exception) {
      set_python_error(exception.error());
    }
  });
}

} // namespace lockstep::python
