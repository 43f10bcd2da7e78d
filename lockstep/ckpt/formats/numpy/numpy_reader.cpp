// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/swapped_storage.h"
#include "lockstep/ckpt/core/unread_array.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/numpy/numpy.h"
#include "lockstep/ckpt/zip/record_source.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

// An array of what tensors do not hold; the error says nothing of damage.
bool is_no_tensor(const Error& error) {
  return error.detail == "E_DTYPE" || error.detail == "E_NPY_OBJECT";
}

std::vector<std::int64_t> strides_of(const NpyHeader& header) {
  const std::size_t rank = header.shape.size();
  std::vector<std::int64_t> strides(rank, 1);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = header.fortran_order ? i : rank - 1 - i;
    strides[d] = step;
    // The sizes beside a dimension of no elements may overflow; nobody uses
    // such strides.
    if (__builtin_mul_overflow(
            step,
            std::max<std::int64_t>(header.shape[d], 1),
            &step)) {
      step = 1;
    }
  }
  return strides;
}

Tensor array_tensor(
    const NpyHeader& header,
    std::shared_ptr<StorageSource> source) {
  Tensor tensor{
      .dtype = header.type.dtype,
      .sizes = header.shape,
      .strides = strides_of(header),
      .storage =
          std::make_shared<Storage>(Storage{.nbytes = header.data_bytes})};
  tensor.storage->dtype = tensor.dtype;
  tensor.storage->source =
      header.type.is_big_endian
          ? swapped_storage(std::move(source), header.data_bytes, tensor.dtype)
          : std::move(source);
  return tensor;
}

Checkpoint new_file(const ReadInput& input, const char* format) {
  return {
      .format = format,
      .era = "NumPy",
      .byteorder = "little",
      .crc = CrcState::kAbsent,
      .file_bytes = input.source->size()};
}

void warn_of_rest(
    Checkpoint& file,
    const NpyHeader& header,
    std::uint64_t total) {
  const std::uint64_t end = header.data_offset + header.data_bytes;
  if (end < total) {
    file.warnings.push_back(
        {.name = "W_TRAILING",
         .text = counted(total - end, "byte follows", "bytes follow") +
                 " the array"});
  }
}

Error in_record(Error error, const std::string& name) {
  error.record = name;
  return error;
}

class NpzReader {
 public:
  NpzReader(const ReadInput& input, ZipReader zip)
      : input_(input),
        zip_(std::make_shared<const ZipReader>(std::move(zip))),
        file_(new_file(input, "npz")) {
    file_.crc = zip_->crc_state();
    file_.warnings = zip_->warnings();
  }

  Result<Checkpoint> run() {
    Dict root;
    std::optional<Error> first_odd;
    bool has_tensor = false;
    root.items.reserve(zip_->records().size());
    for (const ZipRecord& record : zip_->records()) {
      if (!record.name.ends_with(kNpySuffix)) {
        return in_record(
            read_error(
                ErrorCode::kUnsupported,
                "E_NPZ_RECORD",
                "the archive holds arrays and other records",
                "remove the others, or read them with numpy.load"),
            record.name);
      }
      std::string name =
          record.name.substr(0, record.name.size() - kNpySuffix.size());
      auto tensor = read(record);
      if (tensor) {
        has_tensor = true;
        file_.storages.push_back(tensor->storage);
        root.items.emplace_back(std::move(name), *std::move(tensor));
        continue;
      }
      Error error = in_record(std::move(tensor).error(), record.name);
      if (!is_no_tensor(error)) {
        return error;
      }
      warn_of(name, error);
      keep_bytes(record);
      root.items.emplace_back(
          std::move(name),
          Object{.global = std::string(internal::kUnreadArray)});
      first_odd = first_odd ? first_odd : std::move(error);
    }
    if (!has_tensor && first_odd) {
      return *std::move(first_odd);
    }
    file_.root = std::move(root);
    return std::move(file_);
  }

 private:
  // What is in the tree for it keeps a copy from losing it without a word.
  void warn_of(const std::string& name, const Error& error) {
    file_.warnings.push_back(
        {.name = "W_ARRAY",
         .text = format("'{}' is not read: {}", escape(name), error.message)});
  }

  // So that its checksum is compared where those of the others are.
  void keep_bytes(const ZipRecord& record) {
    auto storage = std::make_shared<Storage>(
        Storage{.nbytes = record.size, .dtype = DType::kUInt8});
    storage->source = record_source(
        zip_,
        record,
        record.size,
        input_.options.checks_tensors());
    file_.storages.push_back(std::move(storage));
  }

  Result<Tensor> read(const ZipRecord& record) {
    std::vector<std::byte> scratch;
    ByteSpan head;
    if (record.method == 0) {
      LOCKSTEP_ASSIGN(
          head,
          zip_->source()->view(
              record.data_offset,
              std::min(record.size, kMaxNpyHead),
              scratch));
    } else {
      // Inflated as a whole and forgotten: the ratio is bounded.
      LOCKSTEP_ASSIGN(head, zip_->read(record, scratch));
    }
    LOCKSTEP_ASSIGN(const NpyHeader header, read_npy_header(head, record.size));
    warn_of_rest(file_, header, record.size);
    return array_tensor(
        header,
        record_source(
            zip_,
            record,
            header.data_bytes,
            input_.options.checks_tensors(),
            header.data_offset));
  }

  const ReadInput& input_;
  std::shared_ptr<const ZipReader> zip_;
  Checkpoint file_;
};

} // namespace

Result<bool> claims_npy(const ReadInput& input) {
  return input.source != nullptr && is_npy(input.head);
}

Result<Checkpoint> read_npy(const ReadInput& input) {
  const std::uint64_t total = input.source->size();
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan head,
      input.source->view(0, std::min(total, kMaxNpyHead), scratch));
  LOCKSTEP_ASSIGN(const NpyHeader header, read_npy_header(head, total));
  Checkpoint file = new_file(input, "npy");
  warn_of_rest(file, header, total);
  Tensor tensor = array_tensor(
      header,
      make_range_storage(input.source, header.data_offset, header.data_bytes));
  file.storages.push_back(tensor.storage);
  file.root = std::move(tensor);
  return file;
}

Result<bool> claims_npz(const ReadInput& input) {
  if (input.source == nullptr) {
    return false;
  }
  if (read_struct<EndRecord>(input.head)) {
    return true; // of `numpy.savez` without arrays
  }
  LOCKSTEP_ASSIGN(const auto first, read_local_record(*input.source, 0));
  return first && first->name.ends_with(kNpySuffix);
}

Result<Checkpoint> read_npz(const ReadInput& input) {
  LOCKSTEP_ASSIGN(
      ZipReader zip,
      ZipReader::open(input.source, input.options.limits, ZipForm::kFlat));
  return NpzReader(input, std::move(zip)).run();
}

} // namespace lockstep::ckpt
