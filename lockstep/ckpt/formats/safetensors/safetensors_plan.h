// SPDX-License-Identifier: BSD-3-Clause
//
// What goes into the files of one save, for write_safetensors only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_dtype.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// A tensor to be written.
struct PlannedTensor {
  std::string name = {};
  std::shared_ptr<const Tensor> tensor = {};
  const SafetensorsDType* type = nullptr;
  /// Units: bytes.
  std::uint64_t bytes = 0;
};

/// Text for `__metadata__`.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// Everything to be written, in the order of the tree.
struct SafetensorsPlan {
  SafetensorsMetadata metadata = {};
  std::vector<PlannedTensor> tensors = {};
};

/// Errors: as `write_safetensors`.
Result<SafetensorsPlan> plan_safetensors(
    const Value& root,
    const SaveOptions& options);

/// Writes one file atomically; sorts `tensors` as the package does.
Status write_safetensors_file(
    const std::string& path,
    std::span<PlannedTensor> tensors,
    const SafetensorsMetadata& metadata,
    const SaveOptions& options,
    FileSystem& fs);

/// Writes files of at most `shard_bytes` and their index.
Status write_safetensors_shards(
    const std::string& path,
    SafetensorsPlan& plan,
    const SaveOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt::internal
