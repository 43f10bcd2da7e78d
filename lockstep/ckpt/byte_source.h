// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes of an input that may be mapped, read on demand or already in memory.
// Parsers ask for ranges; a mapping answers without a copy.
//   auto source = open_source("model.pt", {.use_mmap = true});
//   std::vector<std::byte> scratch;
//   auto head = (*source)->view(0, 4, scratch);     // Result<ByteSpan>
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// A finite run of bytes. Threads: `view` may run concurrently with different
/// scratch buffers.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Units: bytes, as of opening.
  [[nodiscard]] virtual std::uint64_t size() const = 0;

  /// Bytes [offset, offset + length). They alias the source if `is_stable()`,
  /// else of `scratch`, which grows to hold them.
  /// Errors: kCorrupt (E_BOUNDS) outside the source, before any allocation;
  /// kIo.
  virtual Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) = 0;

  /// True if views live as long as the source and never use the scratch.
  [[nodiscard]] virtual bool is_stable() const = 0;

  /// The open file with the same bytes at the same offsets, so that others can
  /// copy from it; null if there is none.
  [[nodiscard]] virtual ReadableFile* file() const {
    return nullptr;
  }
};

/// Over a mapped file. Ownership: shares the mapping.
std::shared_ptr<ByteSource> make_source(std::shared_ptr<FileMapping> mapping);

/// Over a file that is read when asked.
std::shared_ptr<ByteSource> make_source(std::unique_ptr<ReadableFile> file);

/// Over memory. Ownership: `bytes` must outlive the source.
std::shared_ptr<ByteSource> make_source(ByteSpan bytes);

/// The same of bytes that live as long as `owner`. Ownership: shares it.
std::shared_ptr<ByteSource> make_source(
    ByteSpan bytes,
    std::shared_ptr<const void> owner);

/// Bytes [offset, offset + length) of `source`, which must lie inside it, as a
/// source of their own. Units: bytes. Ownership: shares `source`.
std::shared_ptr<ByteSource> slice_source(
    std::shared_ptr<ByteSource> source,
    std::uint64_t offset,
    std::uint64_t length);

/// How `open_source` reads.
struct SourceOptions {
  bool use_mmap = true;
};

/// Opens a regular file. Errors: kNotFound, kUnsupported (E_NOT_REGULAR), kIo.
Result<std::shared_ptr<ByteSource>> open_source(
    const std::string& path,
    const SourceOptions& options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
#pragma GCC visibility pop
