// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures of files, and their masks, as samples: decoded, kept, augmented.
//
// Note [What a cache keeps]
// Where nothing is random, the resized pixels of each sample. Where pictures
// are augmented, which gives others in each epoch, the decoded picture with its
// mask, as large as the augmentation needs it. Either way a sample has the bits
// that it has without a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/pixel_cache.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// The files of one sample. Ownership: borrowed.
struct PictureFiles {
  const std::string* image = nullptr;
  /// None: a picture without a mask.
  const std::string* mask = nullptr;
};

/// What all samples have in common.
struct PictureOptions {
  /// As `checked_images` gives them.
  ImageFolderOptions images = {};
  bool has_masks = false;
  /// 255 in masks is class 1.
  bool is_255_one = false;
};

/// Threads: all functions may run in several at once.
class PictureReader {
 public:
  using FilesOf = std::function<PictureFiles(std::int64_t index)>;

  /// `files` is asked here only. With a cache of decoded pictures the head of
  /// each file is read. Errors: as `make_pixel_cache`.
  PictureReader(
      PictureOptions options,
      std::int64_t count,
      const FilesOf& files);

  /// Planes of pixels, and the mask behind them: augmented for an epoch, or
  /// without what is random. Shape: [C, size, size], [size, size].
  /// Valid until `scratch` changes, and while the reader lives.
  /// Errors: as `decoded`; throws kMismatch (E_IMAGE_CHANGED) for a file that
  /// has another size than when the data were opened.
  const std::uint8_t* read(
      std::int64_t index,
      const PictureFiles& files,
      std::optional<std::int64_t> epoch,
      std::vector<std::uint8_t>& scratch) const;

  /// All of it, or a part. A mask that has the size of the picture as the file
  /// has it, and not as EXIF turns it, keeps the picture from being turned.
  /// Errors: as `read_image` and `decode_mask`; throws kMismatch (E_MASK_SIZE)
  /// for a mask of another size.
  [[nodiscard]] AnnotatedImage decoded(
      const PictureFiles& files,
      const ChooseRegion& choose = {}) const;

 private:
  [[nodiscard]] bool keeps_decoded() const {
    return augmenter_ && options_.images.cache != ImageCache::kNone;
  }
  [[nodiscard]] std::uint64_t kept_bytes(std::size_t index) const;
  void measure(std::int64_t count, const FilesOf& files);
  /// Errors: throws kMismatch (E_IMAGE_CHANGED) for another shape.
  [[nodiscard]] std::vector<std::uint8_t> kept(
      const PictureFiles& files,
      const ImageShape& shape) const;
  [[nodiscard]] ImageShape shape_of(const PictureFiles& files) const;
  [[nodiscard]] Image decoded_mask(const std::string& path) const;
  [[nodiscard]] AnnotatedImage augmented(
      std::int64_t index,
      const PictureFiles& files,
      const AugmentPlan& plan,
      std::int64_t epoch) const;
  /// From the cache.
  [[nodiscard]] AnnotatedImage kept_sample(
      std::int64_t index,
      const PictureFiles& files,
      const ChooseRegion& choose) const;
  [[nodiscard]] std::vector<std::uint8_t> plain(AnnotatedImage sample) const;
  [[nodiscard]] FileSystem& fs() const {
    return options_.images.fs == nullptr ? real_fs() : *options_.images.fs;
  }

  PictureOptions options_;
  std::optional<Augmenter> augmenter_;
  /// Of decoded pictures, where they are kept; no pixels: it has no sound head.
  std::vector<ImageShape> shapes_ = {};
  std::unique_ptr<PixelCache> cache_;
};

} // namespace lockstep::internal
