// SPDX-License-Identifier: BSD-3-Clause
//
// Random changes of training pictures, as data: a list of steps with names and
// numbers. What happens to a picture is a function of (seed, epoch, index), and
// each step does what torchvision's transform of the same name does.
//   Augment augment{{{.name = "random_resized_crop"},
//                    {.name = "color_jitter", .values = {{"hue", {0.1}}}}}};
//   const auto [train, val] = image_folders(dir, {.augment = augment});
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"

#pragma GCC visibility push(default)
namespace lockstep {

namespace internal {
class AugmentPlan;
} // namespace internal

/// One step. docs/data.md lists the names, and what each takes.
struct AugmentStep {
  std::string name = {};
  /// How often the step happens, 0 to 1; none: as torchvision's transform.
  std::optional<double> probability = {};
  /// One number or two for each name; what is left out is torchvision's.
  std::map<std::string, std::vector<double>> values = {};

  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

/// What is done to a picture, in this order. At most one step gives it its
/// size, "random_resized_crop" or "fit"; without one, "fit" comes first.
struct Augment {
  std::vector<AugmentStep> steps = {};

  friend bool operator==(const Augment&, const Augment&) = default;
};

/// "light", "standard", "strong".
std::vector<std::string> augment_names();

/// The steps of that name: "standard" are torchvision's for ImageNet, a random
/// resized crop and a flip; "light" crops less; "strong" adds TrivialAugment
/// and erasing.
/// Errors: throws kInvalidArgument for another name.
Augment named_augment(std::string_view name);

/// Units: pixels from the picture's upper left corner, where the first pixel is
/// from 0 to 1.
struct Point {
  double x = 0;
  double y = 0;

  friend bool operator==(const Point&, const Point&) = default;
};
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

/// What a mask says of places that the picture does not have.
inline constexpr std::uint8_t kIgnoredPixel = 255;

/// A picture with what is marked in it.
struct AnnotatedImage {
  Image image = {};
  /// Of the image's size, with one channel.
  std::optional<Image> mask = {};
  std::vector<Box> boxes = {};
  std::vector<Point> points = {};
};

/// What an `Augmenter` works for.
struct AugmenterOptions {
  /// Units: pixels of the pictures that come out; both 0: as they come in.
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t seed = 0;
};

/// An `Augment`, checked and ready to use.
/// Threads: safe to use from several threads.
class Augmenter {
 public:
  /// Errors: throws kInvalidArgument (E_DATA_OPTION) for a step or a number
  /// that is not known, one outside its range, and more than 64 steps.
  explicit Augmenter(const Augment& augment, AugmenterOptions options = {});

  /// Places move with the picture: masks take the nearest pixel, and
  /// `kIgnoredPixel` where there is none. A box becomes the smallest around its
  /// corners, cut at the picture's edge; one that has left the picture has no
  /// area. Points may lie outside. Colours, and what is erased, are the
  /// picture's alone.
  ///
  /// Draw number d of step s is word d % 4 of the Philox block with the key
  /// `seed` and the counter (index, low word first; low word of epoch;
  /// 65536 * (s + 1) + d / 4), s from 0. Draw 0 decides whether it happens.
  /// Errors: throws kInvalidArgument for a mask of another size.
  [[nodiscard]] AnnotatedImage
  apply(AnnotatedImage sample, std::int64_t epoch, std::int64_t index) const;

  /// For `DecodeOptions`: with how many pixels of its shorter side a picture
  /// may come in. Twice what the smallest crop needs; 0, all of them, where a
  /// step before the sizing counts pixels.
  [[nodiscard]] std::int64_t min_side() const;

  [[nodiscard]] const internal::AugmentPlan& plan() const {
    return *plan_;
  }

 private:
  std::shared_ptr<const internal::AugmentPlan> plan_;
};

/// How two samples of a batch are mixed.
struct MixOptions {
  /// The share of a sample is drawn from Beta(alpha, alpha).
  double alpha = 1.0;
  /// Of targets that are class numbers.
  std::int64_t num_classes = 0;
  /// What the draws depend on, as an `Augmenter`'s, with `batch`, its number in
  /// the epoch, for the index and 0x7FFF for the step.
  std::int64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
};

/// Adds to each sample the one before it, to the first the last: torchvision's
/// MixUp, images and targets lambda * x[i] + (1 - lambda) * x[i - 1].
/// Shape: images [N, C, H, W] float; targets [N] int64, or [N, classes] float;
/// out: targets [N, classes] float32, or their own type.
/// Errors: throws kInvalidArgument for an alpha that is not above 0, and for
/// class numbers outside `num_classes`.
Batch mix_up(const Batch& batch, const MixOptions& options);

/// Puts a box of the one before into each sample: torchvision's CutMix, with
/// targets by the box's share of the pixels. Otherwise as `mix_up`.
Batch cut_mix(const Batch& batch, const MixOptions& options);

/// `mix_up` with `options.alpha` or `cut_mix` with `cutmix_alpha`; of two above
/// 0 each for half of the batches, as torchvision's training script. 0 and 0:
/// the batch. The choice is word 0 as above, with 0x7FFE for the step.
Batch mix_batch(
    const Batch& batch,
    const MixOptions& options,
    double cutmix_alpha);

/// Pictures side by side in rows of `columns`, on white; smaller ones lie in
/// the middle of their cell.
/// Errors: throws kInvalidArgument for no pictures, and no columns.
Image contact_sheet(const std::vector<Image>& images, std::int64_t columns);

/// Writes a PNG file. Errors: throws kIo.
void write_png(
    const std::string& path,
    const Image& image,
    FileSystem& fs = real_fs());

} // namespace lockstep
#pragma GCC visibility pop
