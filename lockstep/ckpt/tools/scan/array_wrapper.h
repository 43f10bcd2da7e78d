// SPDX-License-Identifier: BSD-3-Clause
//
// The arrays of joblib: a pickled wrapper tells shape and type, and the
// elements follow its BUILD, in the middle of the pickle.
//   WrappedArray array{.count = 6, .type = wrapped_type("f8")};
//   const auto size = wrapped_bytes(array, rest);
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// The type of the elements.
struct WrappedType {
  /// NumPy's letter: 'f' for floats.
  char kind = 0;
  /// Units: bytes.
  std::uint64_t item_bytes = 0;
  /// A pickle of its own follows, not elements.
  bool is_object = false;
};

/// What the state of a `numpy.dtype` says.
struct WrappedTypeState {
  /// Units: bytes; nothing if it is no size.
  std::optional<std::uint32_t> item_bytes = {};
  std::uint32_t flags = 0;
  bool has_fields = false;
};

/// What the wrapper's state says, as far as it is known.
struct WrappedArray {
  std::optional<std::uint64_t> count = {};
  std::optional<WrappedType> type = {};
  /// A byte with the number of fill bytes, and those, come first.
  bool is_aligned = false;
};

/// True for joblib's wrapper, also the copy that scikit-learn had.
bool is_array_wrapper(std::string_view name);

/// The type of `numpy.dtype(letters, ...)`; nothing for what is not spelled so.
std::optional<WrappedType> wrapped_type(std::string_view letters);

/// The type after BUILD with the state; nothing if NumPy does not write such a
/// state for it, which may change the size of elements.
std::optional<WrappedType> built_type(
    WrappedType type,
    const WrappedTypeState& state);

/// Units: bytes between the wrapper and the next opcode, for an array that
/// holds no objects. `rest`: what follows the BUILD. Nothing if that is not
/// known.
std::optional<std::uint64_t> wrapped_bytes(
    const WrappedArray& array,
    ByteSpan rest);

} // namespace lockstep::ckpt
