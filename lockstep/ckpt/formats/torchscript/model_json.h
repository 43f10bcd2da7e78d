// SPDX-License-Identifier: BSD-3-Clause
//
// TorchScript archives of torch 1.0 to 1.2: the modules are a record
// model.json, each tensor a record tensors/N, other attributes a pickle.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// Record that only such archives have.
inline constexpr std::string_view kModelJson = "model.json";

/// What such an archive holds.
struct ModelJson {
  /// As a newer archive would hold it: objects `__torch__.Module`.
  Value root = {};
  /// In the order of the tensor table.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// Names in attributes.pkl.
  std::vector<GlobalUse> globals = {};
};

/// Reads the archive's tree; tensors stay lazy.
/// Errors: kCorrupt (E_MODEL_JSON, E_NO_STORAGE, and those of views and
/// pickles), kUnsafe (E_DEPTH, E_LIMIT), kIo.
Result<ModelJson> read_model_json(
    const std::shared_ptr<const ZipReader>& zip,
    const LoadOptions& options);

} // namespace lockstep::ckpt
