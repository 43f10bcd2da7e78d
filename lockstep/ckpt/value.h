// SPDX-License-Identifier: BSD-3-Clause
//
// The value tree: everything a checkpoint file can hold, as plain data.
// Readers make it, writers take it, edits change it; nothing in it is code.
//   Value v = Value::dict({{"epoch", 3}, {"state_dict", weights}});
//   const Value* lr = v.find("optimizer")->find("param_groups");
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/dtype.h"

namespace lockstep::ckpt {

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

/// A block of bytes that one or more tensors view.
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
  /// The strings 'storage', location and key of the file, so that a re-saved
  /// file shares them as before; null for a new storage.
  std::shared_ptr<const std::string> tag_text = {};
  std::shared_ptr<const std::string> location_text = {};
  std::shared_ptr<const std::string> key_text = {};
};

class Value;

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

/// Key and value in file order. Keys are mostly strings, optimizer state uses
/// integers.
using Item = std::pair<Value, Value>;

struct Dict;
struct Object;
struct List;
struct Tuple;
struct Set;

struct None {
  friend bool operator==(None, None) = default;
};
/// Integer beyond 64 bits: two's complement, little-endian, minimal length.
struct BigInt {
  std::string bytes = {};
};
struct Bytes {
  std::string data = {};
};
struct Complex {
  double real = 0;
  double imag = 0;
};
/// `torch.Size`, written as such.
struct Size {
  std::vector<std::int64_t> sizes = {};
};
/// `torch.device('cuda', 1)`; index -1 if absent.
struct Device {
  std::string type = "cpu";
  int index = -1;
};
/// `torch.float32` as a value.
struct DTypeValue {
  DType dtype = DType::kFloat32;
};
/// One node of the tree. Copying shares containers: copies are cheap, and a
/// node reached twice stays one node (a memo reference in the file). Strings
/// are shared the same way, since Python's pickler goes by identity, too.
/// Change a container only through the owner you made it with.
class Value {
 public:
  using Variant = std::variant<
      None,
      bool,
      std::int64_t,
      BigInt,
      double,
      std::shared_ptr<const std::string>,
      Bytes,
      Complex,
      Size,
      Device,
      DTypeValue,
      std::shared_ptr<Tensor>,
      std::shared_ptr<List>,
      std::shared_ptr<Tuple>,
      std::shared_ptr<Set>,
      std::shared_ptr<Dict>,
      std::shared_ptr<Object>>;

  Value() = default;
  // Implicit on purpose: literals read well inside `Value::dict({...})`.
  // NOLINTBEGIN(google-explicit-constructor)
  Value(None) {}
  // A template takes a bool as it is, not what converts to one: no pointers.
  template <std::same_as<bool> T>
  Value(T v) : data_(v) {}
  Value(int v) : data_(std::int64_t{v}) {}
  Value(std::int64_t v) : data_(v) {}
  Value(double v) : data_(v) {}
  Value(const char* v) : Value(std::string(v)) {}
  Value(std::string v)
      : data_(std::make_shared<const std::string>(std::move(v))) {}
  Value(std::string_view v) : Value(std::string(v)) {}
  Value(BigInt v) : data_(std::move(v)) {}
  Value(Bytes v) : data_(std::move(v)) {}
  Value(Complex v) : data_(v) {}
  Value(Size v) : data_(std::move(v)) {}
  Value(Device v) : data_(std::move(v)) {}
  Value(DTypeValue v) : data_(v) {}
  Value(Tensor v) : data_(std::make_shared<Tensor>(std::move(v))) {}
  Value(List v);
  Value(Tuple v);
  Value(Set v);
  Value(Dict v);
  Value(Object v);
  Value(std::shared_ptr<Tensor> v) : data_(std::move(v)) {}
  Value(std::shared_ptr<List> v) : data_(std::move(v)) {}
  Value(std::shared_ptr<Tuple> v) : data_(std::move(v)) {}
  Value(std::shared_ptr<Set> v) : data_(std::move(v)) {}
  Value(std::shared_ptr<Dict> v) : data_(std::move(v)) {}
  Value(std::shared_ptr<Object> v) : data_(std::move(v)) {}
  // NOLINTEND(google-explicit-constructor)
  Value(const Value&) = default;
  Value(Value&&) noexcept = default;
  Value& operator=(const Value&) = default;
  Value& operator=(Value&&) noexcept = default;
  /// Iterative: a deeply nested tree does not overflow the stack.
  ~Value() {
    if (is_container()) {
      release();
    }
  }

  static Value dict(std::initializer_list<Item> items);
  static Value ordered_dict(std::initializer_list<Item> items);
  static Value list(std::initializer_list<Value> items);
  static Value tuple(std::initializer_list<Value> items);

  [[nodiscard]] const Variant& data() const noexcept {
    return data_;
  }

  [[nodiscard]] bool is_none() const noexcept;
  /// True for a list, tuple, set, dict or object.
  [[nodiscard]] bool is_container() const noexcept {
    return data_.index() >= kFirstContainer;
  }
  /// The value of that type, or null.
  [[nodiscard]] const bool* as_bool() const noexcept;
  [[nodiscard]] const std::int64_t* as_int() const noexcept;
  [[nodiscard]] const double* as_float() const noexcept;
  [[nodiscard]] const std::string* as_string() const noexcept;
  [[nodiscard]] Tensor* as_tensor() const noexcept;
  [[nodiscard]] List* as_list() const noexcept;
  [[nodiscard]] Tuple* as_tuple() const noexcept;
  [[nodiscard]] Dict* as_dict() const noexcept;
  [[nodiscard]] Object* as_object() const noexcept;
  /// Int or float as double (Python's implicit widening).
  [[nodiscard]] std::optional<double> number() const noexcept;

  /// Entry of a dict by string or integer key; null if this is no dict or has
  /// no such key.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] const Value* find(std::int64_t key) const noexcept;
  /// Sets an entry of a dict, replacing one with the same key. Errors: throws
  /// kInternal if this is no dict.
  void set(Value key, Value value);

  /// Python's word for the type: "dict", "int", "Tensor".
  [[nodiscard]] std::string_view type_name() const noexcept;

 private:
  // The types behind it are containers, too.
  static constexpr std::size_t kFirstContainer = 12;
  static_assert(std::is_same_v<
                std::variant_alternative_t<kFirstContainer, Variant>,
                std::shared_ptr<List>>);

  void release();

  Variant data_;
};

/// A Python dict. Order is the file's.
struct Dict {
  /// How the dict is spelled in a pickle.
  enum class Kind { kDict, kOrderedDict, kCounter };
  Kind kind = Kind::kDict;
  std::vector<Item> items = {};
  /// Attributes set on an OrderedDict (`_metadata` of a state_dict).
  std::vector<Item> attributes = {};
};

/// A value whose class we do not run: the class's name and what was given.
struct Object {
  /// "module.Class".
  std::string global = {};
  /// Arguments of REDUCE or NEWOBJ (a tuple), None without a call.
  std::shared_ptr<Value> args = {};
  /// Argument of BUILD, empty without one.
  std::shared_ptr<Value> state = {};
  /// Items appended or set on the object, in order.
  std::vector<Item> items = {};
};

struct List {
  std::vector<Value> items = {};
};
struct Tuple {
  std::vector<Value> items = {};
};
struct Set {
  std::vector<Value> items = {};
};

} // namespace lockstep::ckpt
