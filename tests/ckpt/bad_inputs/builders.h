// SPDX-License-Identifier: BSD-3-Clause
//
// Small zip checkpoints to break: one pickle, one storage of 16 bytes.
//   std::string file = checkpoint(tensor_pickle({.offset = 1}));
#pragma once

#include <string>
#include <vector>

#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt::bad_inputs {

/// Arguments of `_rebuild_tensor_v2`.
struct TensorSpec {
  std::int64_t offset = 0;
  std::vector<std::int64_t> size = {2, 2};
  std::vector<std::int64_t> stride = {2, 1};
  std::string type = "FloatStorage";
  std::string key = "0";
  std::int64_t numel = 4;
};

inline Pickle& put_ints(Pickle& pickle, const std::vector<std::int64_t>& v) {
  pickle.mark();
  for (const std::int64_t value : v) {
    pickle.int8(value);
  }
  return pickle.op('t');
}

/// Leaves a tensor on the stack.
inline Pickle& put_tensor(Pickle& pickle, const TensorSpec& spec = {}) {
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.storage(spec.type, spec.key, spec.numel).int8(spec.offset);
  put_ints(pickle, spec.size);
  put_ints(pickle, spec.stride);
  return pickle.op(0x89).hooks().op('t').op('R');
}

/// `{'w': tensor}`
inline std::string tensor_pickle(const TensorSpec& spec = {}) {
  Pickle pickle;
  pickle.op('}').text("w");
  put_tensor(pickle, spec).op('s').stop();
  return pickle.bytes();
}

/// What an archive holds besides the pickle, and what its entries lie.
struct ArchiveSpec {
  std::string data = "0123456789abcdef";
  EntryLies data_lies = {};
  EntryLies pickle_lies = {};
  EntryLies version_lies = {};
  std::vector<std::pair<std::string, std::string>> more = {};
  EndLies end = {};
};

/// An archive with `data.pkl`, `data/0`, `version` and `more`, below "a/".
inline std::string checkpoint(
    const std::string& pickle = tensor_pickle(),
    const ArchiveSpec& spec = {}) {
  ZipBytes zip;
  zip.add("a/data.pkl", pickle, spec.pickle_lies);
  zip.add("a/data/0", spec.data, spec.data_lies);
  zip.add("a/version", "3\n", spec.version_lies);
  for (const auto& [name, payload] : spec.more) {
    zip.add(name, payload);
  }
  return zip.finish(spec.end);
}

inline std::string checkpoint(const Pickle& pickle) {
  return checkpoint(pickle.bytes());
}

} // namespace lockstep::ckpt::bad_inputs
