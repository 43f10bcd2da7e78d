// SPDX-License-Identifier: BSD-3-Clause
//
// What every reader gives: the value tree of a checkpoint and the facts of its
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// A name that a pickle mentions, whether or not it is used.
struct GlobalUse {
  /// "module.name" as written; ':' before a dotted name.
  std::string name = {};
  /// Units: bytes from the start of the pickle, of the first use.
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  /// True if `torch.load(weights_only=True)` accepts it.
  bool is_safe = false;
};

/// The Python source of a class, which PyTorch up to 1.5 put into the file of a
/// whole model.
struct ClassSource {
  /// "module.Class".
  std::string name = {};
  /// Path on the machine that wrote the file; empty if it did not say.
  std::string file = {};
  /// Empty if it did not say.
  std::string text = {};
};

/// Which records carry a CRC. PyTorch can leave them out (all are 0 then).
enum class CrcState {
  kPresent,
  /// `data/*` have none (`torch.serialization.skip_data`).
  kAbsentInData,
  kAbsent,
};

/// What is odd about a file but harmless.
struct Warning {
  /// "W_TRAILING": docs/error_details.md lists them.
  std::string name = {};
  std::string text = {};

  friend bool operator==(const Warning&, const Warning&) = default;
};

/// "W_TRAILING: 1 byte follows the array"
inline std::string to_string(const Warning& warning) {
  return warning.name + ": " + warning.text;
}

/// A record of a zip checkpoint that is no part of the value: a note that
/// somebody put into the file, or bytes that no tensor uses.
struct ExtraRecord {
  /// Without the archive's root: "extra/notes.json".
  std::string name = {};
  /// Its content, lazy as that of tensors.
  std::shared_ptr<Storage> content = {};
};

struct ExportedFile;

/// What was read. Tensors stay lazy: bytes are touched when asked for.
struct Checkpoint {
  Value root = {};
  /// "zip" for PyTorch's container since 1.6, "torchscript" for the same with
  /// code in it (also C++ `torch::save`), "legacy" for the stream before.
  std::string format = {};
  /// Top folder inside a zip: "checkpoint.pth".
  std::string archive_name = {};
  /// Which writers make such files: "torch 2.6 or newer".
  std::string era = {};
  /// Number in the record `version`.
  std::int64_t version = 0;
  /// "little", "big", or empty if neither the file nor `LoadOptions` says it
  /// (then little).
  std::string byteorder = {};
  CrcState crc = {};
  /// Units: bytes.
  std::uint64_t file_bytes = 0;
  /// Names in the pickle, in the order of first use.
  std::vector<GlobalUse> globals = {};
  /// Storages in the order of first use, also those no tensor reaches.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// In the order of the file; an edit keeps them.
  std::vector<ExtraRecord> extra_records = {};
  /// Tensors without names that a TorchScript program holds as constants: all
  /// weights of a frozen one. Not read.
  std::uint64_t constants = 0;
  /// Units: bytes.
  std::uint64_t constant_bytes = 0;
  /// Classes whose source travels in the file, in the order of first use.
  std::vector<ClassSource> class_sources = {};
  /// The program of a `.pt2` file, whose weights `root` has; null for others.
  std::shared_ptr<const ExportedFile> program = {};
  std::vector<Warning> warnings = {};
};

} // namespace lockstep::ckpt

/// `for (auto& [key, value] : load(path)->root.as_dict()->items)` would loop
/// over a tree that is gone.
template <>
inline constexpr bool lockstep::kNamesResult<lockstep::ckpt::Checkpoint> = true;
