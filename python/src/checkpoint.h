// SPDX-License-Identifier: BSD-3-Clause
//
// An open checkpoint as an object of Python: its tree, its tensors by name.
// lockstep/_files.py wraps it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/load.h"
#include "python/src/tree.h"

namespace lockstep::python {

/// Ownership: holds the mapping of the file; so do the arrays that it gave.
/// Threads: the GIL is held except while a storage is read.
class OpenCheckpoint {
 public:
  OpenCheckpoint(ckpt::Checkpoint file, const TreeOptions& options)
      : file_(std::move(file)), options_(options) {}

  /// Errors of all: throw into Python.
  nanobind::object root();
  /// Dotted names of all tensors, in file order.
  nanobind::object names();
  /// The tensor or other value with that name, which is UTF-8.
  nanobind::object value(const nanobind::bytes& utf8);
  [[nodiscard]] bool has_value(const nanobind::bytes& utf8);
  /// A dict: what an array does not say of its tensor.
  nanobind::object info(const nanobind::bytes& utf8);
  /// A dict: what is known of the file.
  [[nodiscard]] nanobind::object facts() const;

 private:
  struct NamedTensor {
    std::string name = {};
    ckpt::Tensor tensor = {};
  };

  const std::vector<NamedTensor>& tensors();
  const ckpt::Tensor* find_tensor(const std::string& name);

  ckpt::Checkpoint file_;
  TreeOptions options_;
  StorageBuffers storages_;
  bool is_listed_ = false;
  std::vector<NamedTensor> tensors_;
  std::unordered_map<std::string, std::size_t> rows_;
};

void register_checkpoint(nanobind::module_& module);

} // namespace lockstep::python
