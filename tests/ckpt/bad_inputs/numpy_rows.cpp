// SPDX-License-Identifier: BSD-3-Clause
//
// Row 64: NumPy arrays with headers that lie, alone and in archives.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

// An array of version 1 with this literal as header.
std::string npy(const std::string& literal, const std::string& data = "") {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(literal.size()));
  return bytes + literal + data;
}

std::string shaped(const std::string& descr, const std::string& shape) {
  return npy(
      "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape +
          ", }\n",
      "01234567");
}

BadInput bad(
    std::string name,
    std::string bytes,
    std::string detail,
    std::string says,
    ErrorCode code = ErrorCode::kCorrupt) {
  return {
      .row = 64,
      .name = "npy_" + std::move(name),
      .bytes = std::move(bytes),
      .detail = std::move(detail),
      .code = code,
      .says = {std::move(says), "offset 0x"}};
}

std::string archive(const std::string& array) {
  ZipBytes zip;
  zip.add("w.npy", array);
  return zip.finish();
}

} // namespace

std::vector<BadInput> numpy_rows() {
  const std::string objects = shaped("'|O'", "(1,)");
  BadInput in_archive =
      bad("objects_in_archive",
          archive(objects),
          "E_NPY_OBJECT",
          "Python objects",
          ErrorCode::kUnsafe);
  in_archive.says.emplace_back("record w.npy");
  return {
      bad("objects",
          objects,
          "E_NPY_OBJECT",
          "Python objects",
          ErrorCode::kUnsafe),
      in_archive,
      bad("objects_in_structure",
          shaped("[('a', '<f4'), ('b', '|O')]", "(1,)"),
          "E_NPY_OBJECT",
          "Python objects",
          ErrorCode::kUnsafe),
      bad("structure",
          shaped("[('a', '<f4'), ('b', '<f4')]", "(1,)"),
          "E_DTYPE",
          "element type",
          ErrorCode::kUnsupported),
      bad("shape_of_2_to_63",
          shaped("'<f4'", "(9223372036854775808,)"),
          "E_OVERFLOW",
          "does not fit in 64 bits"),
      bad("size_overflows",
          shaped("'<f4'", "(4611686018427387904, 4)"),
          "E_OVERFLOW",
          "does not fit in 64 bits"),
      bad("shape_negative", shaped("'<f4'", "(-1,)"), "E_NPY_HEADER", "shape"),
      bad("cut",
          shaped("'<f4'", "(3,)"),
          "E_TRUNCATED",
          "expected 12 bytes of elements, got 8"),
      bad("code_in_header",
          shaped("__import__('os').system('id')", "(1,)"),
          "E_NPY_HEADER",
          "invalid array header"),
      bad("header_past_end",
          std::string("\x93NUMPY\x01\x00\xff\xff{", 11),
          "E_NPY_HEADER",
          "claims 65535 bytes"),
      bad("version_9",
          std::string("\x93NUMPY\x09\x00\x02\x00{}", 12),
          "E_NPY_HEADER",
          "npy version 9.0",
          ErrorCode::kUnsupported),
      {.row = 64,
       .name = "npy_empty_and_huge",
       .bytes =
           shaped("'<f4'", "(0, 4611686018427387904, 4611686018427387904)"),
       .detail = "E_OVERFLOW",
       .says = {"does not fit in 64 bits"}},
  };
}

} // namespace lockstep::ckpt::bad_inputs
