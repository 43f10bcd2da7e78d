// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Context.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/device/device_list.h"
#include "lockstep/program/internal/program_facts.h"
#include "lockstep/train/checkpoints/augment_file.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/step/device_choice.h"
#include "lockstep/train/step/image_fit.h"
#include "lockstep/train/step/model_options.h"
#include "lockstep/train/step/named_model.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

// What the words of image files mean for sets of small images. "light" is
// without the flip, which makes other digits.
constexpr std::array kSmallImages{
    PixelMoves{.name = "light", .crop_padding = 2},
    PixelMoves{.name = "standard", .crop_padding = 4, .horizontal_flip = true},
};

// The moves that a list of steps stands for: a crop, a flip, or one after the
// other; nothing for other steps.
std::optional<PixelMoves> moves_of(const Augment& augment) {
  PixelMoves moves;
  auto step = augment.steps.begin();
  const auto end = augment.steps.end();
  if (step != end && step->name == "crop") {
    AugmentStep rest = *step;
    const auto padding = rest.values.extract("padding");
    if (rest != AugmentStep{.name = "crop"}) {
      return std::nullopt;
    }
    moves.crop_padding =
        padding ? static_cast<std::int64_t>(padding.mapped().front())
                : find_pixel_moves("crop-flip")->crop_padding;
    ++step;
  }
  if (step != end && *step == AugmentStep{.name = "horizontal_flip"}) {
    moves.horizontal_flip = true;
    ++step;
  }
  return step == end ? std::optional(moves) : std::nullopt;
}

// Nothing for what stands for steps of image files.
std::optional<PixelMoves> moves_of(const std::string& augment, bool is_folder) {
  const PixelMoves* const row = find_pixel_moves(augment);
  if (row != nullptr) {
    return *row;
  }
  if (is_folder) {
    return std::nullopt;
  }
  const auto* const small =
      std::ranges::find(kSmallImages, augment, &PixelMoves::name);
  return small != kSmallImages.end() ? std::optional(*small)
                                     : moves_of(augment_of(augment));
}

std::string small_image_words() {
  std::vector<std::string> words;
  for (const PixelMoves& row : pixel_moves()) {
    words.emplace_back(row.name);
  }
  for (const PixelMoves& row : kSmallImages) {
    words.emplace_back(row.name);
  }
  return join(words, ", ");
}

TransformOptions transform_of(const TrainConfig& config, bool is_folder) {
  const auto moves = moves_of(config.augment, is_folder);
  if (!moves && !is_folder) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.data",
         .message = format(
             "--augment {}: only image files have these steps, {} has {} and "
             "lists of crop and horizontal_flip",
             escape(config.augment),
             escape(config.data),
             small_image_words()),
         .detail = "E_FLAG_VALUE"});
  }
  return moves ? TransformOptions{
                     .crop_padding = moves->crop_padding,
                     .horizontal_flip = moves->horizontal_flip,
                     .seed = config.seed}
               : TransformOptions{.seed = config.seed};
}

// Sides of the pictures of a folder: the same whether the settings leave it to
// the model or name what came of that, as those of a checkpoint do.
std::int64_t picture_size(const TrainConfig& config) {
  const std::int64_t usual = DatasetOptions().image_size;
  const std::array<std::int64_t, 3> shape{3, usual, usual};
  const std::int64_t fit =
      fit_images(config.img_size, config.model, shape).size;
  return fit > 0 ? fit : usual;
}

ImageCache cache_of(const TrainConfig& config) {
  return config.cache == "ram"    ? ImageCache::kRam
         : config.cache == "disk" ? ImageCache::kDisk
                                  : ImageCache::kNone;
}

// What a task that is named makes of targets that could be either.
TargetKind targets_for(std::string_view task) {
  return task == "regression" || task == "multilabel" ? TargetKind::kValues
         : task == "auto" || task.starts_with(kOwnPrefix)
             ? TargetKind::kNone
             : TargetKind::kClasses;
}

void open_named_data(const TrainConfig& config, OwnParts& parts) {
  const bool is_folder = may_have_image_files(config.data);
  // The split is the same for every seed of the run: runs can be compared.
  DatasetParts data = open_dataset(
      config.data,
      config.data_dir,
      {.transform = transform_of(config, is_folder),
       .augment = is_folder ? augment_of(config.augment) : Augment(),
       .image_size = picture_size(config),
       .split = {.val_share = config.val_split},
       .skip_bad_images = config.on_bad_image == "skip",
       .cache = cache_of(config),
       .target = config.target,
       .targets = targets_for(config.task)});
  parts.train_data = std::move(data.train);
  parts.test_data = std::move(data.test);
  parts.data_name = config.data;
  parts.data_notes = std::move(data.notes);
  for (const Error& error : data.bad_files) {
    parts.data_warnings.push_back(
        format("left out: {} ({})", error.path, error.message));
  }
}

/// As Python's `torch.manual_seed`, which knows devices of other makers, too.
void seed_generators(std::uint64_t seed, std::span<const c10::Device> devices) {
  at::manual_seed(seed);
  for (const c10::Device& device : devices) {
    if (device.is_privateuseone()) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      const std::scoped_lock lock(generator.mutex());
      generator.set_current_seed(seed);
    }
  }
}

/// `size`: that of the images, 0 if they stay as they are.
ModelOptions options_for(const Dataset& data, std::int64_t size) {
  std::vector<std::int64_t> shape = data.sample_shape();
  if (shape.size() == 3 && size > 0) {
    shape[1] = size;
    shape[2] = size;
  }
  return model_options(outputs_of(data), shape);
}

/// Errors: throws kInvalidArgument (E_TASK) for a model of images where samples
/// are none, and for a program of other samples.
void check_samples_fit(const TrainConfig& config, const Dataset& data) {
  const std::size_t dimensions = data.sample_shape().size();
  if (!takes_shape(config.model, dimensions)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.task",
         .message = format(
             "the model {} takes {}; the samples have {} dimensions",
             config.model,
             is_program_file(config.model)
                 ? "samples of other dimensions"
                 : "images of 3 dimensions (channels, height, width)",
             dimensions),
         .hint = "--model mlp takes rows of numbers",
         .detail = "E_TASK"});
  }
}

/// Errors: throws kInvalidArgument (E_TASK) for a model of one class for each
/// sample where the data have masks, and the other way round.
void check_model_fits(const TrainConfig& config, const Dataset& data) {
  const TargetFormat targets = data.target_format();
  const bool has_masks =
      targets.kind == TargetKind::kClasses && targets.shape.size() == 2;
  const bool makes_masks =
      named_model_task(config.model) == ModelTask::kSegmentation;
  if (has_masks == makes_masks) {
    return;
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.task",
       .message = format(
           "the model {} gives {}; the data have {}",
           config.model,
           makes_masks ? "a class for each pixel" : "one output for a sample",
           has_masks ? "masks" : "no masks"),
       .hint = has_masks ? "--model unet, fcn_resnet50 or deeplabv3_resnet50"
                         : "--model resnet18, for example",
       .detail = "E_TASK"});
}

void make_named_model(
    const TrainConfig& config,
    const dist::ProcessGroup& group,
    OwnParts& parts) {
  const Dataset& data = *parts.first_data();
  check_samples_fit(config, data);
  if (parts.task.is_empty()) {
    check_model_fits(config, data);
  }
  const ImageFit fit =
      fit_images(config.img_size, config.model, data.sample_shape());
  const std::vector<c10::Device> devices =
      parse_devices(choose_devices(config).spec);
  // Its initial weights are the generator's first numbers.
  seed_generators(static_cast<std::uint64_t>(config.seed), devices);
  parts.model = make_named(config.model, options_for(data, fit.size));
  parts.model_name = config.model;
  if (const int rank = group.rank(); rank > 0) {
    // What dropout leaves out differs from rank to rank.
    seed_generators(static_cast<std::uint64_t>(config.seed + rank), devices);
  }
}

} // namespace

OwnParts named_parts(
    const TrainConfig& settings,
    OwnParts given,
    const dist::ProcessGroup& group) {
  TrainConfig config = checked_flags(settings);
  config.augment = resolved_augment(config.augment, real_fs());
  prepare_process(config); // weights are computed, too
  if (!given.has_data()) {
    open_named_data(config, given);
  }
  if (given.model.is_empty()) {
    make_named_model(config, group, given);
  }
  return given;
}

OwnParts named_data(const TrainConfig& settings) {
  OwnParts parts;
  open_named_data(checked_flags(settings), parts);
  return parts;
}

} // namespace lockstep::train
