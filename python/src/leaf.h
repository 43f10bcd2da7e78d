// SPDX-License-Identifier: BSD-3-Clause
//
// Leaves of the value tree as objects of Python: numbers, texts, bytes.
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/value.h"
#include "python/src/array.h"
#include "python/src/errors.h"
#include "python/src/text.h"

namespace lockstep::python {

// What the C interface gave. Errors: throws Python's current exception.
inline nanobind::object owned(PyObject* made) {
  if (made == nullptr) {
    throw nanobind::python_error();
  }
  return nanobind::steal(made);
}

inline nanobind::object bytes_of(std::string_view data) {
  return owned(PyBytes_FromStringAndSize(
      data.data(),
      static_cast<Py_ssize_t>(data.size())));
}

// What leaves of a tree become.
struct Leaf {
  nanobind::object operator()(ckpt::None /*none*/) const {
    return nanobind::none();
  }
  nanobind::object operator()(bool value) const {
    return nanobind::bool_(value);
  }
  nanobind::object operator()(std::int64_t value) const {
    return nanobind::int_(value);
  }
  nanobind::object operator()(double value) const {
    return nanobind::float_(value);
  }
  nanobind::object operator()(const ckpt::DTypeValue& value) const {
    return Kit::get().dtype(text(ckpt::dtype_info(value.dtype).name));
  }
  nanobind::object operator()(const ckpt::BigInt& value) const {
    return Kit::get().from_bytes(
        bytes_of(value.bytes),
        "little",
        nanobind::arg("signed") = true);
  }
  nanobind::object operator()(const std::string& value) const {
    return text(value);
  }
  nanobind::object operator()(const ckpt::Bytes& value) const {
    return bytes_of(value.data);
  }
  nanobind::object operator()(const ckpt::Complex& value) const {
    return owned(PyComplex_FromDoubles(value.real, value.imag));
  }
  nanobind::object operator()(const ckpt::Size& value) const {
    return Kit::get().size(int_tuple(value.sizes));
  }
  nanobind::object operator()(const ckpt::Device& value) const {
    const nanobind::object index =
        value.index < 0 ? nanobind::object(nanobind::none())
                        : nanobind::object(nanobind::int_(value.index));
    return Kit::get().device(text(value.type), index);
  }
  template <class T>
  nanobind::object operator()(const T& /*not a leaf*/) const {
    raise_python(
        {.code = ErrorCode::kInternal,
         .op = "python.load",
         .message = "a value has no place in Python"});
  }
};

} // namespace lockstep::python
