// SPDX-License-Identifier: BSD-3-Clause
//
// Lists every name that Python's unpicklers ask for, without building values:
// also names that are popped again, that come before a broken opcode, or that
// are put together from strings. Where the unpickler in C and the one in Python
// differ, it goes as far as either. Strings that hold pickles are scanned, too.
//   PickleScan scan = scan_pickle(bytes);
//   scan.names, scan.broken                  // both may be there
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

/// A name in a pickle, at its first use.
struct PickleName {
  /// "module.name" as written; ':' before a dotted name; "?" if it is put
  /// together from values that are not plain strings.
  std::string name = {};
  /// Units: bytes from the start of the pickle; for a nested one, of the string
  /// that holds it.
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  bool is_nested = false;
};

/// A storage that a persistent id names.
struct PickleStorage {
  std::string key = {};
  /// Nothing for a class that is not known.
  std::optional<DType> dtype = {};
};

/// The value that STOP gives, of which the length of raw bytes behind a pickle
/// may depend.
enum class PickleRoot : std::uint8_t {
  kOther,
  /// None, a small number or a text.
  kPlain,
  /// A tuple of three, the last of which is a name.
  kTriple,
  /// A list of texts and nothing else, if texts are collected.
  kTexts,
};

/// What a pickle mentions.
struct PickleScan {
  std::vector<PickleName> names = {};
  /// Each text of a key once; those of views of storages, too.
  std::vector<PickleStorage> storages = {};
  /// A persistent id may name more than `storages` says.
  bool has_unknown_ids = false;
  /// What a name stands for was changed, here or before: no length that comes
  /// from a class is known any more.
  bool has_changed_names = false;
  /// Only of a pickle that is not broken.
  PickleRoot root = PickleRoot::kOther;
  /// The third of `kTriple`.
  std::string root_class = {};
  /// Those of `kTexts`: one that is used again is shared.
  std::vector<std::shared_ptr<const std::string>> texts = {};
  /// What pickle asks for, but joblib does not, in a file that joblib may have
  /// written: the memo of an array of objects seems to be that around it.
  std::vector<PickleName> unlikely = {};
  /// Pickles inside strings.
  std::uint64_t nested = 0;
  /// Units: bytes up to and with STOP, or up to what is broken.
  std::uint64_t consumed = 0;
  /// Why the scan ended before STOP.
  std::optional<Error> broken = {};
  /// More bytes behind the end could change any of it.
  bool is_cut = false;
};

/// What `scan_pickle` collects.
struct PickleScanOptions {
  Limits limits = {};
  bool collect_texts = false;
  /// Levels of pickles inside strings that are followed.
  int nesting = 4;
  /// The file may be one of joblib, which skips the elements of its arrays;
  /// others run them as opcodes. Names of both readings are listed; what is
  /// broken and where the pickle ends is joblib's. Without it the elements are
  /// opcodes.
  bool has_joblib_arrays = true;
  /// A pickle before this one changed names.
  bool has_changed_names = false;
};

/// True if Python may ask for the name: if a module and a name in it may be
/// called so ("my-module.f", but not what stands in a sentence, a table or a
/// program), or if it is put together from values that may be texts.
bool may_be_asked_for(const PickleName& name, const PickleScan& scan);

/// Scans the pickle at the front of `bytes`, which is all that there is of it.
/// Never fails: what is wrong is in `broken`, with the same codes as
/// `read_pickle`.
PickleScan scan_pickle(ByteSpan bytes, const PickleScanOptions& options = {});

/// The same of the pickle at `offset`, whose end is not known: views grow until
/// it fits, up to `max_pickle_bytes` (E_LIMIT). Errors: kIo; kUnsafe (E_LIMIT)
/// for views that together are too many.
Result<PickleScan> scan_pickle_at(
    ByteSource& source,
    std::uint64_t offset,
    const PickleScanOptions& options = {});

} // namespace lockstep::ckpt
