// SPDX-License-Identifier: BSD-3-Clause
//
// The value tree as objects of Python: dicts, lists, NumPy arrays that alias
// the storages. Nothing that a file names is imported or called.
//   const nb::object root = TreeConverter({}, storages).convert(file.root);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::python {

/// How trees become objects.
struct TreeOptions {
  /// The file, for errors.
  std::string path = {};
  /// Give bfloat16 and float8 the dtypes of the package ml_dtypes.
  bool use_ml_dtypes = false;
  ckpt::Limits limits = {};
  /// Units: bytes, for which `limits` allow steps.
  std::uint64_t file_bytes = 0;
};

/// The buffers of storages that were asked for, so that tensors which share a
/// storage share the object, too. Ownership: keeps both.
class StorageBuffers {
 public:
  /// Errors: throws into Python what loading returned.
  nanobind::object buffer_of(
      const std::shared_ptr<ckpt::Storage>& storage,
      const std::string& path);

 private:
  struct Row {
    std::shared_ptr<ckpt::Storage> storage = {};
    nanobind::object buffer = {};
  };
  std::unordered_map<const ckpt::Storage*, Row> rows_;
};

/// Converts one tree, without recursion. What is one node in the file is one
/// object, and cycles through dicts, lists, sets and objects are cycles again.
/// The caller holds the GIL.
class TreeConverter {
 public:
  /// Ownership: both must outlive this.
  TreeConverter(const TreeOptions& options, StorageBuffers& storages);

  /// Errors: throws into Python: those of the storages; kUnsupported for a key
  /// that Python cannot hash, and for a tuple or tensor that holds itself;
  /// kUnsafe (E_LIMIT) for keys that take forever to hash. Not to be used again
  /// then.
  nanobind::object convert(const ckpt::Value& value);

 private:
  // A value whose parts are being converted.
  struct Frame {
    const ckpt::Value* value = nullptr;
    // What it is to the frame below.
    ckpt::ChildSlot slot = ckpt::ChildSlot::kElement;
    // Inside a key or an element of a set, where arrays are wrapped.
    bool is_in_key = false;
    // Values that hashing it looks at; of a key that is reached twice, twice.
    std::uint64_t hashed = 1;
    std::size_t next = 0;
    std::size_t count = 0;
    // The object; of a tensor its array.
    nanobind::object made = {};
    // The last key, or the attributes of a tensor.
    nanobind::object key = nanobind::none();
    nanobind::object quantizer = nanobind::none();
  };

  struct Made {
    nanobind::object object = {};
    std::uint64_t hashed = 1;
  };

  static bool holds_key(const Frame& frame, ckpt::ChildSlot slot);
  nanobind::object enter(const ckpt::Child& child, bool is_in_key);
  nanobind::object known(const ckpt::Value& value, bool is_in_key);
  nanobind::object begin(const ckpt::Value& value, bool is_in_key);
  void deliver(ckpt::ChildSlot slot, nanobind::object made);
  nanobind::object end(Frame& frame);
  nanobind::object array(const ckpt::Tensor& tensor);
  nanobind::object wrapped(const Frame& frame, const nanobind::object& array);
  [[nodiscard]] bool is_plain(const ckpt::Tensor& tensor) const;
  [[nodiscard]] nanobind::object referred(const ckpt::Object& object) const;
  void set_item(
      const nanobind::object& dict,
      const nanobind::object& key,
      const nanobind::object& value) const;
  void remember(
      const ckpt::Value& value,
      bool is_in_key,
      const nanobind::object& made,
      std::uint64_t hashed);
  [[noreturn]] void refuse_key() const;
  [[noreturn]] void refuse(const char* message, const char* hint) const;

  const TreeOptions* options_;
  StorageBuffers* storages_;
  // How many values of keys may still be hashed.
  std::uint64_t hash_steps_;
  // Nodes with several owners, and what they are inside keys, where they
  // differ.
  std::array<std::unordered_map<const void*, Made>, 2> made_;
  std::vector<Frame> path_;
  // Of the value that was made last.
  std::uint64_t hashed_ = 1;
};

} // namespace lockstep::python
