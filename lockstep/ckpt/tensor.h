// SPDX-License-Identifier: BSD-3-Clause
//
// Element types, storages and tensors: strided views of bytes that are read
// when somebody asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

// Element types of tensors in checkpoint files, as one table.

/// Element type; names are PyTorch's (`torch.float32` -> kFloat32).
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex128,
  kComplex64,
  kQInt8,
  kQUInt8,
  kQInt32,
  kQUInt4x2,
  kQUInt2x4,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8E5M2,
  kFloat8E4M3FN,
  kFloat8E5M2FNUZ,
  kFloat8E4M3FNUZ,
  kFloat8E8M0FNU,
  kFloat4E2M1FNX2,
  kComplex32,
  kBits8,
  kBits16,
  kBits1x8,
  kBits2x4,
  kBits4x2,
};

/// One row of the table.
struct DTypeInfo {
  DType dtype = DType::kFloat32;
  /// PyTorch's name without "torch.": "float32".
  std::string_view name = {};
  /// Units: bytes per storage element.
  std::size_t size = 0;
  /// Storage class without "Storage" ("Float"); empty where PyTorch uses an
  /// untyped storage with `_rebuild_tensor_v3`.
  std::string_view storage = {};
  /// Elements that share a byte. The last dimension is padded to whole bytes:
  /// shape [3, 3] of quint4x2 takes 6 bytes.
  std::uint8_t per_byte = 1;
};

/// All rows, in the order of `DType`.
std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType dtype);
/// By PyTorch's name ("float32"); nothing if unknown.
std::optional<DType> dtype_by_name(std::string_view name);
/// By storage class ("Float" or "FloatStorage").
std::optional<DType> dtype_by_storage(std::string_view storage);

// Tensors of a checkpoint: a strided view of a storage, whose bytes come from a
// file, an archive or a live tensor when somebody asks for them.

/// Takes a block of bytes that is valid during the call.
using BlockVisitor = std::function<Status(ByteSpan block)>;

/// Where the bytes of a storage come from. Readers map lazily; the tensor
/// bridge aliases live tensors. Threads: `load` may be called concurrently.
class StorageSource {
 public:
  /// The same bytes in an open file, with their stored CRC-32.
  struct Stored {
    /// Ownership: lives as long as the source.
    ReadableFile* file = nullptr;
    /// Units: bytes.
    std::uint64_t offset = 0;
    std::uint32_t crc = 0;
  };

  virtual ~StorageSource() = default;
  /// The bytes, valid while this object lives. Errors: kIo, kCorrupt.
  virtual Result<ByteSpan> load() = 0;
  /// Bytes [offset, offset + length), which must lie inside the storage. They
  /// are valid until `scratch` changes: nothing is kept, so that a file larger
  /// than the memory can be streamed. Errors: as `load`.
  virtual Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch);
  /// Gives the bytes in order, for those who need them once: a source that
  /// reads or makes them does it block by block and keeps nothing. An error
  /// may come after the last block (a wrong CRC). Errors: as `load`; what
  /// `visit` returned.
  virtual Status stream(const BlockVisitor& visit) {
    LOCKSTEP_ASSIGN(const ByteSpan bytes, load());
    return visit(bytes);
  }
  /// Where the bytes lie as they are, if a file has them so with a checksum.
  [[nodiscard]] virtual std::optional<Stored> stored() const {
    return std::nullopt;
  }
};

/// A block of bytes that one or more tensors view. As a value it is an argument
/// of a call that is being read; in a finished tree it has become an `Object`
/// of its class (globals.h, `storage_object`).
struct Storage {
  /// Units: bytes.
  std::uint64_t nbytes = 0;
  /// Device tag in the file: "cpu", "cuda:0".
  std::string location = "cpu";
  /// Key in the file the storage was read from ("0"); empty for a new one.
  std::string key = {};
  std::shared_ptr<StorageSource> source = {};
  /// Dtype of the storage class in the file (views may differ).
  DType dtype = DType::kFloat32;
  /// That class, "torch.FloatStorage"; empty for a new storage.
  std::string class_name = {};
  /// The strings 'storage', location and key of the file, so that a re-saved
  /// file shares them as before; null for a new storage.
  std::shared_ptr<const std::string> tag_text = {};
  std::shared_ptr<const std::string> location_text = {};
  std::shared_ptr<const std::string> key_text = {};
};

class Value;

/// As many as PyTorch's tensors can have.
inline constexpr std::size_t kMaxDimensions = 64;

/// A strided view of a storage. Equal `storage` pointers mean shared memory.
struct Tensor {
  DType dtype = DType::kFloat32;
  /// Shape: one entry per dimension; empty for a scalar.
  std::vector<std::int64_t> sizes = {};
  /// Units: elements.
  std::vector<std::int64_t> strides = {};
  /// Units: elements from the start of the storage.
  std::int64_t offset = 0;
  std::shared_ptr<Storage> storage = {};
  bool requires_grad = false;
  /// True if the file wraps it as `torch.nn.Parameter`.
  bool is_parameter = false;
  bool is_conj = false;
  bool is_neg = false;
  /// Python attributes set on the tensor (a dict), null for none.
  std::shared_ptr<Value> attributes = {};
  /// What the integers of a quantized tensor stand for, as in the file;
  /// quantizer.h reads and makes it. Null for other tensors.
  std::shared_ptr<Value> quantizer = {};
  /// Python class of a tensor of a subclass ("module.Name"), else empty.
  std::string class_name = {};

  [[nodiscard]] std::int64_t numel() const;
  /// True if elements are row-major without gaps.
  [[nodiscard]] bool is_contiguous() const;
};

/// Strides of elements one row after the other; an empty dimension counts as
/// one, as in PyTorch. Units: elements. The number of elements must fit.
std::vector<std::int64_t> row_major_strides(
    const std::vector<std::int64_t>& sizes);

/// Checks a view against its storage. Sizes and strides count elements; where
/// several share a byte, strides only have to fit in 64 bits.
/// Errors: kCorrupt (E_RANK, E_VIEW_NEGATIVE, E_OVERFLOW, E_VIEW_BOUNDS).
Status check_view(const Tensor& tensor);

} // namespace lockstep::ckpt
