// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep predict` writes of each image: rows of CSV, lines of JSON, or
// an archive of NumPy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/fs.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/inference/outputs.h"

namespace lockstep::cli_train {

/// What is written.
struct PredictionOptions {
  train::OutputKind kind = train::OutputKind::kClasses;
  /// Of each class, label or value.
  std::vector<std::string> names = {};
  /// Best classes of an image, or labels; 0: one class, all labels.
  std::int64_t top = 0;
};

/// A field of CSV, in quotes where it needs them (RFC 4180).
std::string csv_field(std::string_view text);

/// "path,class,score", "path,class,score,class_2,score_2", or "path" and the
/// names of labels or values. With its line feed, as all rows.
std::string csv_header(const PredictionOptions& options);

/// `scores`: those of one image, one for each name.
std::string csv_row(
    const PredictionOptions& options,
    const std::string& path,
    std::span<const float> scores);

/// {"path": ..., "predictions": [{"class": ..., "score": ...}]}, or "scores" or
/// "values" by name.
std::string json_row(
    const PredictionOptions& options,
    const std::string& path,
    std::span<const float> scores);

/// All predictions as arrays: `scores`, float32 with a row for each image, and
/// as UTF-8 with zeros behind, uint8, `paths` and `names`. In Python:
///   z = numpy.load("scores.npz")
///   paths = z["paths"].view(f"S{z['paths'].shape[1]}").ravel()
/// Errors: throws kIo.
void write_npz(
    const PredictionOptions& options,
    const std::vector<std::string>& paths,
    const at::Tensor& scores,
    const std::string& file,
    FileSystem& fs = real_fs());

} // namespace lockstep::cli_train
