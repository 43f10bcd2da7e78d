// SPDX-License-Identifier: BSD-3-Clause
//
// Values as text for people (close to Python's repr) and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// How much of a value is printed.
struct PrintOptions {
  /// Lines before "..."; a shared value is printed each time it is reached.
  std::uint64_t max_lines = 200;
  /// Containers below this level are printed as "{...}".
  std::uint64_t max_depth = 8;
  /// Units: bytes of a text before "...".
  std::uint64_t max_text = 200;
};

/// Python-like text, without a final line feed: `{\n  'epoch': 3,\n}`.
/// Control characters of the file are escaped.
std::string to_text(const Value& value, const PrintOptions& options = {});

/// One line that says what a value is: `OrderedDict with 122 items`, `0.1`.
std::string describe(const Value& value);

/// The same of a part of a tensor that several ranks have together, "DTensor
/// float32 [10, 3], rows 5..10 of 10, Shard(0)"; empty for any other value.
std::string describe_shard(const Value& value);

/// A value without parts as Python writes it; a container's number of them.
/// Units: `max_text` bytes of a text before "...".
std::string scalar_text(const Value& value, std::uint64_t max_text);

/// `[64, 3, 7, 7]`.
std::string shape_text(const Tensor& tensor);

/// "float32 [64, 3, 7, 7]".
std::string describe(const Tensor& tensor);

/// Class of a dict in Python: "dict", "OrderedDict", "Counter".
std::string_view dict_class(const Dict& dict);

/// A tensor's row in JSON: name is left to the caller.
Json tensor_json(const Tensor& tensor);

/// A value as JSON. Dicts with other keys than text become lists of
/// `[key, value]`. Errors: kUnsafe (E_LIMIT) for more than a million nodes,
/// 65,536 below values that were there before, or 64 MiB of text.
Result<Json> to_json(const Value& value);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
