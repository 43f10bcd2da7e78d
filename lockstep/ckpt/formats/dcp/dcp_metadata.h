// SPDX-License-Identifier: BSD-3-Clause
//
// The file `.metadata` of a folder that `torch.distributed.checkpoint` wrote:
// a pickle that says where the pieces of each tensor lie. PyTorch runs it; here
// it is read as data, and a name outside of a short list is refused.
//   auto metadata = read_dcp_metadata(bytes, limits);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {

inline constexpr const char* kDcpMetadataFile = ".metadata";
/// How the names of the files with tensors end.
inline constexpr const char* kDcpDataSuffix = ".distcp";

/// Where an item lies: a whole file of `torch.save` inside a file of the
/// folder. Units: bytes.
struct DcpPlace {
  /// Name in the folder.
  std::string file = {};
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// A box of a tensor, saved by one rank. Units: elements.
struct DcpChunk {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};
  DcpPlace place = {};
};

/// An entry of the saved dict.
struct DcpItem {
  /// Path joined by dots.
  std::string name = {};
  std::vector<PathStep> path = {};
  /// Off: any object, in `place`.
  bool is_tensor = false;
  DType dtype = DType::kFloat32;
  bool requires_grad = false;
  std::vector<std::int64_t> sizes = {};
  std::vector<DcpChunk> chunks = {};
  DcpPlace place = {};
};

/// A dict without entries. PyTorch leaves it out; we note it beside what it
/// reads.
struct DcpEmpty {
  /// Number of items before it.
  std::size_t position = 0;
  std::vector<PathStep> path = {};
};

/// Attribute of the metadata with those: a list of (position, key, key, ...).
inline constexpr std::string_view kDcpEmpty = "lockstep_empty";

/// What `.metadata` says, in its order.
struct DcpMetadata {
  std::vector<DcpItem> items = {};
  std::vector<DcpEmpty> empty = {};
  std::vector<GlobalUse> globals = {};
  std::vector<Warning> warnings = {};
};

/// Reads the pickle and checks its form; places are not compared with files.
/// Errors: as `read_pickle`; kCorrupt (E_DCP_METADATA, E_NO_STORAGE), kUnsafe
/// (E_UNSAFE_GLOBAL, E_DEPTH for a path, E_LIMIT for names and paths that are
/// far larger than the pickle), kUnsupported (E_DTYPE, E_DCP_TRANSFORM).
Result<DcpMetadata> read_dcp_metadata(ByteSpan bytes, const Limits& limits);

/// The same of a file. Errors: also kUnsafe (E_LIMIT) for one of more bytes
/// than a pickle may have, kIo.
Result<DcpMetadata> read_dcp_metadata(ByteSource& source, const Limits& limits);

} // namespace lockstep::ckpt
