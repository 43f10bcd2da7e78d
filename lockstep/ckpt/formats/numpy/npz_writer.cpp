// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/numpy/numpy.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt {
namespace {

// One record to come.
struct PlannedArray {
  std::string record = {};
  std::string header = {};
  std::shared_ptr<const Tensor> tensor = {};
  /// Units: bytes, with the header.
  std::uint64_t bytes = 0;
};

Error refused(const FlatTensor& flat, ErrorCode code, const char* detail) {
  return internal::save_error(
      code,
      detail,
      format(
          "'{}', {}, cannot be a record of an npz archive",
          escape(flat.name),
          describe(*flat.tensor)));
}

Result<std::vector<PlannedArray>> plan_arrays(
    const Value& root,
    const SaveOptions& options) {
  LOCKSTEP_ASSIGN(FlatState flat, flatten(root));
  if (!flat.scalars.empty()) {
    const FlatScalar& first = flat.scalars.front();
    return internal::save_error(
        ErrorCode::kUnsupported,
        "E_NOT_TENSOR",
        format(
            "'{}' is {}, and npz holds tensors only",
            escape(first.name),
            escape(describe(first.value))),
        "'lockstep ckpt drop' takes it away; safetensors holds it as text");
  }
  if (flat.tensors.empty()) {
    return internal::save_error(
        ErrorCode::kUnsupported,
        "E_NOT_TENSOR",
        "there is no tensor to write, and NumPy does not open an archive "
        "without arrays",
        "'lockstep ckpt show FILE' prints what is there");
  }
  if (!options.clone_views) {
    LOCKSTEP_TRY(check_not_shared(
        flat,
        "npz has no views; SaveOptions::clone_views writes each tensor"));
  }
  const bool is_bare = root.as_tensor() != nullptr;
  std::vector<PlannedArray> arrays;
  for (const FlatTensor& tensor : flat.tensors) {
    if (is_quantized(tensor.tensor->dtype)) {
      Error error = refused(tensor, ErrorCode::kUnsupported, "E_DTYPE");
      error.hint = internal::kQuantizedHint;
      return error;
    }
    PlannedArray array{
        .record = (is_bare ? "arr_0" : tensor.name) + std::string(kNpySuffix),
        .header = npy_header_text(tensor.tensor->dtype, tensor.tensor->sizes),
        .tensor = tensor.tensor};
    if (!is_record_name(array.record)) {
      return refused(tensor, ErrorCode::kInvalidArgument, "E_NAME");
    }
    array.bytes = array.header.size() + contiguous_bytes(*tensor.tensor);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Status write_array(ZipWriter& zip, const PlannedArray& array) {
  return zip.add(
      array.record,
      array.bytes,
      [&array](const ZipWriter::Sink& sink) -> Status {
        LOCKSTEP_TRY(sink(as_byte_span(array.header)));
        return for_each_block(*array.tensor, sink);
      });
}

std::uint64_t npz_bytes(const std::vector<PlannedArray>& arrays) {
  std::vector<PlannedRecord> records;
  records.reserve(arrays.size());
  for (const PlannedArray& array : arrays) {
    records.push_back({array.record, array.bytes});
  }
  return zip_file_bytes("", records);
}

} // namespace

std::string npy_header_text(
    DType dtype,
    const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kPreamble = 10;
  constexpr std::size_t kGrowthDigits = 21; // room to append in place
  std::string literal = format(
      "{{'descr': {}, 'fortran_order': False, 'shape': (",
      numpy_descr(dtype));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    literal += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  }
  literal += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) {
    literal.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  }
  // NumPy adds a whole block if the length fits already.
  const std::size_t used = kPreamble + literal.size() + 1;
  literal.append(kAlignment - used % kAlignment, ' ');
  literal.push_back('\n');
  std::string text(kNpyMagic);
  text += '\x01';
  text += '\0';
  text += static_cast<char>(literal.size() & 0xFF);
  text += static_cast<char>(literal.size() >> 8 & 0xFF);
  return text + literal;
}

Status write_npz(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(const auto arrays, in_file(plan_arrays(root, options), path));
  return write_file_atomically(
      fs,
      path,
      [&arrays](WritableFile& file) -> Status {
        ZipWriter zip(file, "");
        for (const PlannedArray& array : arrays) {
          LOCKSTEP_TRY(write_array(zip, array));
        }
        return zip.finish();
      },
      {.expected_bytes = npz_bytes(arrays),
       .durable = options.durable,
       .replace = options.replace});
}

} // namespace lockstep::ckpt
