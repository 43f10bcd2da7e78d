// SPDX-License-Identifier: BSD-3-Clause
//
// The module lockstep._core: the public headers of lockstep/ckpt for the
// Python files beside it, which are what users see.
#include <cstddef>
#include <cstdint>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "lockstep/base/version.h"
#include "python/src/array.h"
#include "python/src/checkpoint.h"
#include "python/src/errors.h"
#include "python/src/reading.h"
#include "python/src/reports.h"
#include "python/src/storage.h"
#include "python/src/text.h"

namespace nb = nanobind;

namespace {

// Elements of one byte as numbers: what each of the 256 stands for. None for
// types whose bytes are no numbers.
nb::object byte_values(const std::string& dtype) {
  const auto found = lockstep::ckpt::dtype_by_name(dtype);
  if (!found || lockstep::ckpt::dtype_info(*found).size != 1) {
    return nb::none();
  }
  nb::list values;
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::byte>(i);
    const auto number = lockstep::ckpt::read_number(&byte, *found);
    if (!number) {
      return nb::none();
    }
    values.append(*number);
  }
  return values;
}

// The text of an error that the program told as JSON.
nb::object error_text(const nb::dict& fields) {
  const auto part = [&](const char* name) {
    return nb::cast<std::string>(fields[name]);
  };
  lockstep::Error error{
      .op = part("op"),
      .message = part("message"),
      .hint = part("hint"),
      .path = part("path"),
      .record = part("record")};
  if (!fields["offset"].is_none()) {
    error.offset = nb::cast<std::uint64_t>(fields["offset"]);
  }
  return lockstep::python::text(to_string(error));
}

} // namespace

NB_MODULE(_core, module) {
  // Arrays that live when the interpreter ends are no leak worth a word.
  nb::set_leak_warnings(false);
  module.doc() = "The C++ part of lockstep.";
  module.attr("__version__") = std::string(lockstep::kVersion);
  module.attr("compiler") = std::string(lockstep::kCompiler);
  lockstep::python::register_translator();
  lockstep::python::register_storage(module);
  lockstep::python::register_checkpoint(module);
  lockstep::python::register_reports(module);
  module.def("byte_values", &byte_values);
  module.def("error_text", &error_text);
  module.def("limit_names", &lockstep::python::limit_names);
  module.def("prepare", [] { lockstep::python::Kit::get(); });
}
