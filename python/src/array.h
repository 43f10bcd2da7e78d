// SPDX-License-Identifier: BSD-3-Clause
//
// A tensor of a checkpoint as a NumPy array over its storage, and the classes
// of the Python side that values need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::python {

/// How the elements of a dtype look in NumPy.
struct DTypeRow {
  /// numpy.dtype
  nanobind::object dtype = {};
  /// Off: only the bits, in an unsigned or other type of the same size.
  bool is_exact = false;
};

/// Objects of NumPy and of lockstep/_values.py, looked up once for a process.
class Kit {
 public:
  static const Kit& get();

  /// numpy.ndarray
  nanobind::object ndarray = {};
  /// Classes of lockstep/_values.py.
  nanobind::object tensor = {};
  nanobind::object object = {};
  nanobind::object numpy_array = {};
  nanobind::object size = {};
  nanobind::object device = {};
  nanobind::object dtype = {};
  /// Of Python's library; the last is `int.from_bytes`.
  nanobind::object ordered_dict = {};
  nanobind::object counter = {};
  nanobind::object from_bytes = {};

  [[nodiscard]] const DTypeRow& row(ckpt::DType of, bool use_ml) const;

 private:
  Kit();
  std::vector<DTypeRow> plain_;
  mutable std::vector<DTypeRow> ml_;
};

/// A tuple of ints.
nanobind::object int_tuple(const std::vector<std::int64_t>& numbers);

/// What the elements of `tensor` are, as an array that aliases `buffer`, an
/// object with the bytes of its storage; conjugated or negated ones and those
/// that share bytes are copied. Read-only in any case.
/// Errors: throws into Python what reading returned.
nanobind::object array_of(
    const ckpt::Tensor& tensor,
    const nanobind::object& buffer,
    const DTypeRow& row,
    std::uint64_t max_expanded_bytes,
    const std::string& path);

} // namespace lockstep::python
