// SPDX-License-Identifier: BSD-3-Clause
//
// The value tree as objects of Python: dicts, lists, NumPy arrays that alias
// the storages. Nothing that a file names is imported or called.
//   const nb::object root = TreeConverter({}, storages).convert(file.root);
#pragma once

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
  /// Units: bytes, as `Limits::max_expanded_bytes`.
  std::uint64_t max_expanded_bytes = ckpt::Limits().max_expanded_bytes;
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
  TreeConverter(const TreeOptions& options, StorageBuffers& storages)
      : options_(&options), storages_(&storages) {}

  /// Errors: throws into Python: those of the storages; kUnsupported for a key
  /// that Python cannot hash, and for a tuple or tensor that holds itself. Not
  /// to be used again then.
  nanobind::object convert(const ckpt::Value& value);

 private:
  // A value whose parts are being converted.
  struct Frame {
    const ckpt::Value* value = nullptr;
    // What it is to the frame below.
    ckpt::ChildSlot slot = ckpt::ChildSlot::kElement;
    // Inside a key or an element of a set, where arrays are wrapped.
    bool is_in_key = false;
    std::size_t next = 0;
    std::size_t count = 0;
    // The object; of a tensor its array.
    nanobind::object made = {};
    // The last key, or the attributes of a tensor.
    nanobind::object key = nanobind::none();
    nanobind::object quantizer = nanobind::none();
  };

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
  void remember(const ckpt::Value& value, const nanobind::object& made);
  [[noreturn]] void refuse_key() const;

  const TreeOptions* options_;
  StorageBuffers* storages_;
  // Nodes with several owners.
  std::unordered_map<const void*, nanobind::object> made_;
  std::vector<Frame> path_;
  std::uint64_t key_visits_ = 0;
};

} // namespace lockstep::python
