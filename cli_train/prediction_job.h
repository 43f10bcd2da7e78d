// SPDX-License-Identifier: BSD-3-Clause
//
// A trained model and the images that it is to look at.
//   PredictionJob job({.model = "runs/animals", .images = {"photos"}});
//   job.run([](ScoredImages images) { ... });
//   return job.finish();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/internal/image_files.h"
#include "lockstep/train/inference/image_list.h"
#include "lockstep/train/inference/outputs.h"
#include "lockstep/train/inference/trained_model.h"
#include "lockstep/train/strategy.h"

namespace lockstep::cli_train {

inline constexpr std::int64_t kMostWorkers = 1024;

struct PredictionRequest {
  /// Run folder or checkpoint.
  std::string model = {};
  /// Files, folders, "-".
  std::vector<std::string> images = {};
  std::int64_t batch_size = 64;
  std::int64_t workers = 1;
  /// Empty: the best that are here.
  std::string devices = {};
  /// Goes on without images that cannot be read.
  bool skips_bad_images = false;
  /// What "-" stands for.
  std::function<std::string()> read_list = {};
};

/// Images of one batch that could be read.
struct ScoredImages {
  std::vector<std::string> paths = {};
  /// Shape: [paths, ...] float32 on the CPU (`train::scores_of`).
  at::Tensor scores = {};
};

/// An image and its mask.
struct MaskedImage {
  train::ListedImage image = {};
  /// One channel of class numbers, of the image's size.
  Image mask = {};
};

/// Threads: one calls the functions.
class PredictionJob {
 public:
  /// Errors: throws as `open_trained`, `required_data`, `make_trained`,
  /// `output_kind`, `list_images`.
  explicit PredictionJob(PredictionRequest request);

  [[nodiscard]] train::OutputKind kind() const {
    return kind_;
  }
  [[nodiscard]] const train::TrainedData& data() const {
    return *file_.data;
  }
  [[nodiscard]] const std::vector<train::ListedImage>& images() const {
    return images_;
  }

  /// Gives all images in their order, batch by batch; not for masks. An image's
  /// scores do not depend on the others but for the last bits, which the
  /// kernels of another batch size may round in another way; the number of
  /// workers changes no bit.
  /// Errors: throws as `ImageFiles::read`.
  void run(const std::function<void(ScoredImages)>& take);

  /// The same, image by image, where the model gives masks.
  void run_masks(const std::function<void(MaskedImage)>& take);

  /// The exit status; names every image that was left out on standard error.
  [[nodiscard]] int finish() const;

 private:
  ScoredImages scored(const at::Tensor& samples, std::int64_t first);
  MaskedImage masked(
      std::int64_t index,
      const ImageShape& shape,
      const at::Tensor& samples);

  PredictionRequest request_;
  train::TrainedCheckpoint file_;
  train::OutputKind kind_;
  std::vector<train::ListedImage> images_;
  std::unique_ptr<train::Strategy> strategy_;
  std::shared_ptr<internal::ImageFiles> files_;
};

} // namespace lockstep::cli_train
