// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/prediction_job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/program_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_squares.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/train/step/image_fit.h"

namespace lockstep::cli_train {
namespace {

// A file that says what it was trained on.
train::TrainedCheckpoint opened(const std::string& path) {
  train::TrainedCheckpoint file = train::open_trained(path);
  for (const std::string& warning : file.warnings) {
    std::fprintf(stderr, "%s\n", warning.c_str());
  }
  const train::TrainedData& data = train::required_data(file);
  if (!data.pixels.is_known()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "predict",
         .message = "the model was not trained on pixels: its samples are of a "
                    "table, or of a program's own",
         .path = file.path,
         .detail = "E_NO_TRAINED_DATA"});
  }
  return file;
}

std::vector<std::string> paths_of(
    const std::vector<train::ListedImage>& images) {
  std::vector<std::string> paths;
  paths.reserve(images.size());
  for (const train::ListedImage& image : images) {
    paths.push_back(image.path);
  }
  return paths;
}

// Rows that are there, of `rows`.
at::Tensor rows_at(
    const at::Tensor& rows,
    const std::vector<std::int64_t>& places) {
  return std::ssize(places) == rows.size(0)
             ? rows
             : at::index_select(rows, /*dim=*/0, at::tensor(places));
}

} // namespace

PredictionJob::PredictionJob(PredictionRequest request)
    : request_(std::move(request)),
      file_(opened(request_.model)),
      kind_(train::output_kind(data())),
      images_(train::list_images(request_.images, request_.read_list)),
      strategy_(train::strategy_of(
          file_,
          train::make_trained(file_, data()),
          request_.devices)),
      files_(std::make_shared<internal::ImageFiles>(
          paths_of(images_),
          data().pixels,
          request_.skips_bad_images ? internal::OnBadImage::kSkip
                                    : internal::OnBadImage::kStop)) {}

ScoredImages PredictionJob::scored(
    const at::Tensor& samples,
    std::int64_t first) {
  ScoredImages images;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < samples.size(0); ++i) {
    if (!files_->error_of(first + i)) {
      places.push_back(i);
      images.paths.push_back(files_->sample_name(first + i));
    }
  }
  if (places.empty()) {
    return images;
  }
  const at::Tensor outputs = strategy_->predict(samples);
  images.scores = rows_at(train::scores_of(outputs, kind_, data()), places);
  return images;
}

void PredictionJob::run(const std::function<void(ScoredImages)>& take) {
  const std::vector<std::int64_t>& shape = data().sample_shape;
  const bool is_resized = shape != data().pixels.shape;
  Loader<Batch> loader(
      train::resized(files_, {.size = is_resized ? shape.at(1) : 0}),
      {.batch_size = request_.batch_size, .workers = request_.workers});
  std::int64_t first = 0;
  for (const Batch& batch : loader) {
    ScoredImages images = scored(batch.images, first);
    first += batch.size();
    if (!images.paths.empty()) {
      take(std::move(images));
    }
  }
}

MaskedImage PredictionJob::masked(
    std::int64_t index,
    const ImageShape& shape,
    const at::Tensor& samples) {
  const std::vector<std::int64_t>& size = data().sample_shape;
  const std::array<std::int64_t, 2> sides{size[1], size[2]};
  std::vector<Image> masks;
  masks.reserve(static_cast<std::size_t>(samples.size(0)));
  for (const at::Tensor& part : samples.split(request_.batch_size)) {
    const at::Tensor fitting =
        part.size(2) == sides[0] && part.size(3) == sides[1]
            ? part
            : at::_upsample_bilinear2d_aa(part, sides, /*align_corners=*/false);
    const at::Tensor all = train::masks_of(strategy_->predict(fitting), data());
    for (const at::Tensor& mask : all.unbind()) {
      const auto* pixels = mask.const_data_ptr<std::uint8_t>();
      masks.push_back(
          {.shape =
               {.channels = 1, .height = mask.size(0), .width = mask.size(1)},
           .pixels = {pixels, pixels + mask.numel()}});
    }
  }
  return {
      .image = images_[static_cast<std::size_t>(index)],
      .mask =
          internal::join_masks(shape, internal::squares_over(shape), masks)};
}

void PredictionJob::run_masks(const std::function<void(MaskedImage)>& take) {
  // An image has as many squares as its sides need: each is a batch.
  const auto source =
      make_dataset(files_->size(), [files = files_](std::int64_t index) {
        const internal::CutImage image = files->read_squares(index);
        const std::vector<std::int64_t> sides{
            image.shape.height,
            image.shape.width};
        return std::tuple(
            image.squares.empty() ? at::tensor(sides) : image.samples,
            at::tensor(sides));
      });
  Loader loader(
      source,
      LoaderOptions{.batch_size = 1, .workers = request_.workers});
  std::int64_t index = 0;
  for (const auto& [samples, sides] : loader) {
    if (!files_->error_of(index)) {
      const auto* numbers = sides.template const_data_ptr<std::int64_t>();
      take(masked(
          index,
          {.channels = 1, .height = numbers[0], .width = numbers[1]},
          samples[0]));
    }
    ++index;
  }
}

int PredictionJob::finish() const {
  std::int64_t bad = 0;
  std::optional<Error> worst;
  for (std::int64_t i = 0; i < files_->size(); ++i) {
    const std::optional<Error> error = files_->error_of(i);
    if (!error) {
      continue;
    }
    ++bad;
    std::fprintf(stderr, "%s\n", to_program_text(*error).c_str());
    if (!worst ||
        error_info(error->code).exit_code > error_info(worst->code).exit_code) {
      worst = error;
    }
  }
  if (!worst) {
    return 0;
  }
  const Error error{
      .code = worst->code,
      .op = "predict",
      .message = format(
          "{} of {} images {} left out",
          bad,
          files_->size(),
          bad == 1 ? "is" : "are"),
      .detail = worst->detail};
  std::fprintf(stderr, "%s\n", to_program_text(error).c_str());
  return error_info(error.code).exit_code;
}

} // namespace lockstep::cli_train
