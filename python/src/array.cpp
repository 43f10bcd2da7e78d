// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/array.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "python/src/errors.h"
#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

std::vector<DTypeRow> dtype_rows(bool use_ml) {
  nb::list names;
  for (const ckpt::DTypeInfo& info : ckpt::dtype_table()) {
    names.append(text(info.name));
  }
  const nb::object rows = nb::module_::import_("lockstep._values")
                              .attr("_dtype_rows")(names, use_ml);
  std::vector<DTypeRow> result;
  for (const nb::handle row : rows) {
    result.push_back(
        {.dtype = nb::object(row[0]), .is_exact = nb::cast<bool>(row[1])});
  }
  return result;
}

// Of elements as they lie one after the other in `bytes`.
nb::object array_over(
    const nb::object& buffer,
    const nb::object& shape,
    const DTypeRow& row) {
  return Kit::get().ndarray(shape, row.dtype, buffer);
}

// Shape with whole bytes in the last dimension.
std::vector<std::int64_t> byte_shape(const ckpt::Tensor& tensor) {
  std::vector<std::int64_t> sizes = tensor.sizes;
  const std::int64_t per_byte = ckpt::dtype_info(tensor.dtype).per_byte;
  if (!sizes.empty()) {
    sizes.back() = sizes.back() / per_byte + (sizes.back() % per_byte != 0);
  }
  return sizes;
}

// Row-major, with the conj and neg flags applied.
nb::object copied(
    const ckpt::Tensor& tensor,
    const DTypeRow& row,
    std::uint64_t max_expanded_bytes,
    const std::string& path) {
  take(ckpt::check_expansion(tensor, max_expanded_bytes), path);
  const auto size = static_cast<Py_ssize_t>(ckpt::contiguous_bytes(tensor));
  const nb::object bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, size));
  if (!bytes.is_valid()) {
    throw nb::python_error();
  }
  char* to = PyBytes_AsString(bytes.ptr());
  take(
      ckpt::for_each_block(
          tensor,
          [&](ByteSpan block) -> Status {
            std::memcpy(to, block.data(), block.size());
            to += block.size();
            return {};
          }),
      path);
  return array_over(bytes, int_tuple(byte_shape(tensor)), row);
}

// Units: bytes. A dimension of one element has no steps; its stride may be any
// number.
std::vector<std::int64_t> byte_strides(
    const ckpt::Tensor& tensor,
    std::int64_t size) {
  std::vector<std::int64_t> strides;
  strides.reserve(tensor.sizes.size());
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    strides.push_back(tensor.sizes[d] > 1 ? tensor.strides[d] * size : size);
  }
  return strides;
}

} // namespace

nb::object int_tuple(const std::vector<std::int64_t>& numbers) {
  const nb::object tuple =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  if (!tuple.is_valid()) {
    throw nb::python_error();
  }
  Py_ssize_t at = 0;
  for (const std::int64_t number : numbers) {
    PyTuple_SetItem(tuple.ptr(), at++, nb::int_(number).release().ptr());
  }
  return tuple;
}

Kit::Kit() : plain_(dtype_rows(false)) {
  const auto values = nb::module_::import_("lockstep._values");
  const auto collections = nb::module_::import_("collections");
  ndarray = nb::module_::import_("numpy").attr("ndarray");
  tensor = values.attr("Tensor");
  object = values.attr("Object");
  numpy_array = values.attr("_numpy_array");
  size = values.attr("Size");
  device = values.attr("Device");
  dtype = values.attr("DType");
  ordered_dict = collections.attr("OrderedDict");
  counter = collections.attr("Counter");
  from_bytes = nb::module_::import_("builtins").attr("int").attr("from_bytes");
}

const Kit& Kit::get() {
  // Never destroyed: the interpreter is gone before static objects are. No
  // initialiser: its lock and the GIL, which an import lets go, would deadlock.
  static const Kit* kit = nullptr;
  if (kit == nullptr) {
    auto* made = new Kit();
    kit = kit == nullptr ? made : kit;
  }
  return *kit;
}

const DTypeRow& Kit::row(ckpt::DType of, bool use_ml) const {
  if (use_ml && ml_.empty()) {
    auto rows = dtype_rows(true); // another thread may come first meanwhile
    if (ml_.empty()) {
      ml_ = std::move(rows);
    }
  }
  return (use_ml ? ml_ : plain_)[static_cast<std::size_t>(of)];
}

nb::object array_of(
    const ckpt::Tensor& tensor,
    const nb::object& buffer,
    const DTypeRow& row,
    std::uint64_t max_expanded_bytes,
    const std::string& path) {
  const ckpt::DTypeInfo& info = ckpt::dtype_info(tensor.dtype);
  if (info.per_byte > 1 || tensor.is_conj || tensor.is_neg) {
    return copied(tensor, row, max_expanded_bytes, path);
  }
  const nb::object shape = int_tuple(tensor.sizes);
  if (tensor.numel() == 0) {
    return array_over(buffer, shape, row);
  }
  const auto size = static_cast<std::int64_t>(info.size);
  const nb::int_ offset(tensor.offset * size);
  if (tensor.is_contiguous()) {
    return Kit::get().ndarray(shape, row.dtype, buffer, offset);
  }
  return Kit::get().ndarray(
      shape,
      row.dtype,
      buffer,
      offset,
      int_tuple(byte_strides(tensor, size)));
}

} // namespace lockstep::python
