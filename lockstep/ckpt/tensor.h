// SPDX-License-Identifier: BSD-3-Clause
//
// Element types, storages and tensors: strided views of bytes that are read
// when somebody asks for them. The elements of a tensor, row by row: their
// bytes in blocks, and what they say.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lockstep/base/fs.h"

#pragma GCC visibility push(default)
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

/// The dtype whose elements are a T of C++; none for other types.
template <class T>
inline constexpr std::optional<DType> kDTypeOf = std::nullopt;
template <>
inline constexpr std::optional<DType> kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr std::optional<DType> kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::complex<float>> =
    DType::kComplex64;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::complex<double>> =
    DType::kComplex128;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::int8_t> = DType::kInt8;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::int16_t> = DType::kInt16;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::int32_t> = DType::kInt32;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::int64_t> = DType::kInt64;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::uint8_t> = DType::kUInt8;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::uint16_t> = DType::kUInt16;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::uint32_t> = DType::kUInt32;
template <>
inline constexpr std::optional<DType> kDTypeOf<std::uint64_t> = DType::kUInt64;

/// As what elements can be read where they lie: the types above, and
/// `std::byte` for the bytes of any dtype.
template <class T>
concept ElementType = kDTypeOf<T>.has_value() || std::same_as<T, std::byte>;

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
  /// The elements, row by row, where they lie: of a mapped file nothing is
  /// copied. A bool is a `std::uint8_t`. Ownership: valid while a copy of this
  /// tensor lives. Threads: may be called concurrently.
  /// Errors: throws kMismatch for a `T` of another dtype; kInvalidArgument if
  /// the elements do not lie row by row, or where no T may (`tensors` gives all
  /// so that they do); kUnsupported if there are none in the file, or a machine
  /// with the high byte first would read others; kCorrupt (E_VIEW_BOUNDS) if
  /// the storage is too short; as `StorageSource::load`.
  template <ElementType T>
  [[nodiscard]] std::span<const T> span() const&;
  template <ElementType T>
  void span() const&& = delete;
};

namespace internal {
/// The bytes of `Tensor::span`. `dtype`: that of its T, none for bytes.
ByteSpan element_bytes(
    const Tensor& tensor,
    std::optional<DType> dtype,
    std::size_t alignment);
} // namespace internal

template <ElementType T>
std::span<const T> Tensor::span() const& {
  const ByteSpan bytes =
      internal::element_bytes(*this, kDTypeOf<T>, alignof(T));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): checked there
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Strides of elements one row after the other; an empty dimension counts as
/// one, as in PyTorch. Units: elements. The number of elements must fit.
std::vector<std::int64_t> row_major_strides(
    const std::vector<std::int64_t>& sizes);

/// Checks a view against its storage. Sizes and strides count elements; where
/// several share a byte, strides only have to fit in 64 bits.
/// Errors: kCorrupt (E_RANK, E_VIEW_NEGATIVE, E_OVERFLOW, E_VIEW_BOUNDS).
Status check_view(const Tensor& tensor);

// The elements of a tensor as bytes in row-major order, whatever its strides,
// with the conj and neg flags applied: what Python's `t.contiguous()` holds.
//   for_each_block(tensor, [&](ByteSpan bytes) { hash.update(bytes); ... });

/// Units: bytes. Largest block that `for_each_block` gives.
inline constexpr std::uint64_t kTensorBlockBytes = 1ULL << 18;

/// Units: bytes of the elements in row-major order. Types with several elements
/// in a byte count whole bytes per row.
std::uint64_t contiguous_bytes(const Tensor& tensor);

/// True if the tensor has bytes in the file (one on the device `meta` has not).
bool has_bytes(const Tensor& tensor);

/// Refuses a view that repeats the bytes of its storage too often.
/// Units: bytes beyond those of the storage. Errors: kUnsafe (E_LIMIT).
Status check_expansion(const Tensor& tensor, std::uint64_t max_expanded_bytes);

/// Bytes of views that may be read or written for each byte of their storages.
inline constexpr std::uint64_t kViewsPerByte = 16;

/// The same of many tensors: a thousand views of one storage repeat it, too.
class ExpansionBudget {
 public:
  /// Units: bytes beyond `kViewsPerByte` for each of the storages.
  explicit ExpansionBudget(std::uint64_t max_expanded_bytes)
      : max_expanded_bytes_(max_expanded_bytes) {}

  /// Counts `tensor`, whose bytes are read or written next; one that is refused
  /// does not count. Errors: kUnsafe (E_LIMIT).
  Status add(const Tensor& tensor);

 private:
  std::uint64_t max_expanded_bytes_;
  std::unordered_set<const Storage*> storages_;
  // Units: bytes.
  std::uint64_t own_ = 0;
  std::uint64_t views_ = 0;
};

/// Reads a tensor's elements from the first to the last. A contiguous tensor
/// takes a fixed amount of memory; a strided one from a file that is not mapped
/// takes what its view spans. Ownership: keeps a reference to the tensor.
class TensorBlocks {
 public:
  explicit TensorBlocks(const Tensor& tensor);
  ~TensorBlocks();
  TensorBlocks(const TensorBlocks&) = delete;
  TensorBlocks& operator=(const TensorBlocks&) = delete;

  /// The next block, empty at the end; valid until the next call. All blocks
  /// but the last hold `block_elements()`.
  /// Errors: as `StorageSource::view`.
  Result<ByteSpan> next();

  /// Units: elements; those of packed types are their bytes.
  [[nodiscard]] std::uint64_t block_elements() const noexcept;
  /// Changes the size of the blocks to come, so that two tensors of different
  /// types can be read side by side. Precondition: at least 1, and no more than
  /// `kTensorBlockBytes` together.
  void set_block_elements(std::uint64_t count) noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Gives all blocks of `tensor`. Errors: as `TensorBlocks`, and of `visit`.
Status for_each_block(const Tensor& tensor, const BlockVisitor& visit);

// Elements of stored tensors as numbers, and what a tensor holds.

/// The element at `bytes` as a double (int64 may round); nothing for complex
/// and packed sub-byte types. Quantized types give their stored integers.
std::optional<double> read_number(const std::byte* bytes, DType dtype);

/// A complex number is NaN if a part is, else infinite if a part is. Elements
/// that are no numbers are finite.
enum class Finiteness { kFinite, kInf, kNan };

Finiteness finiteness_of(const std::byte* bytes, DType dtype);

/// The element as Python prints it: "0.1", "True", "(1+2j)", "0x1f".
std::string element_text(const std::byte* bytes, DType dtype);

/// A complex number as Python prints it: "(1-0j)", "2j".
std::string complex_text(double real, double imaginary);

/// What a tensor holds.
struct TensorStats {
  /// Over finite elements; absent if there are none, or for complex types.
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::optional<double> mean = {};
  std::uint64_t elements = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
  /// Its first elements in row-major order.
  std::vector<std::string> head = {};
};

/// Reads the elements of `tensor`; those of a conjugate or negative view are
/// what Python shows. `max_elements` bounds the work for views that repeat
/// elements. Errors: what loading returned; kUnsafe (E_LIMIT).
Result<TensorStats> tensor_stats(
    const Tensor& tensor,
    std::uint64_t head_count = 8,
    std::uint64_t max_elements = 16'000'000);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
