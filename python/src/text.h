// SPDX-License-Identifier: BSD-3-Clause
//
// Text of a file as str: any bytes have one, none is lost.
#pragma once

#include <string_view>

#include <nanobind/nanobind.h>

namespace lockstep::python {

/// UTF-8 as str, lone surrogates included; what is not even that keeps its
/// bytes as Python's "surrogateescape" does.
inline nanobind::object text(std::string_view utf8) {
  const auto size = static_cast<Py_ssize_t>(utf8.size());
  PyObject* result = PyUnicode_DecodeUTF8(utf8.data(), size, "surrogatepass");
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
    PyErr_Clear();
    result = PyUnicode_DecodeUTF8(utf8.data(), size, "surrogateescape");
  }
  if (result == nullptr) {
    throw nanobind::python_error();
  }
  return nanobind::steal(result);
}

} // namespace lockstep::python
