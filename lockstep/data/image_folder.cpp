// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/internal/file_digest.h"
#include "lockstep/data/internal/image_options.h"
#include "lockstep/data/internal/image_walk.h"
#include "lockstep/data/internal/picture_reader.h"
#include "lockstep/data/internal/resize_uint8.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {
namespace {

FileSystem& files_of(const ImageFolderOptions& options) {
  return options.fs == nullptr ? real_fs() : *options.fs;
}

[[noreturn]] void no_data(std::string message, const std::string& path) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "data.open",
       .message = std::move(message),
       .hint = "expected one folder for each class, with .jpg, .png or .webp "
               "files in it",
       .path = path,
       .detail = "E_NO_DATA"});
}

[[noreturn]] void bad_option(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.open",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

bool is_directory(FileSystem& fs, const std::string& path) {
  const Result<FileInfo> info = fs.stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

// Folders in `directory`, sorted.
std::vector<std::string> folders_in(
    FileSystem& fs,
    const std::string& directory) {
  std::vector<std::string> folders;
  for (const std::string& name : fs.list(directory).value()) {
    if (!name.starts_with(".") &&
        is_directory(fs, format("{}/{}", directory, name))) {
      folders.push_back(name);
    }
  }
  return folders;
}

internal::PictureFiles files_of(
    const std::vector<ImageSample>& samples,
    std::int64_t index) {
  return {.image = &samples[static_cast<std::size_t>(index)].path};
}

// Takes those out that cannot be decoded, and gives their errors.
std::vector<Error> take_out_bad(
    std::vector<ImageSample>& samples,
    const ImageFolderOptions& options) {
  const auto errors =
      internal::image_errors(std::ssize(samples), [&](std::int64_t i) {
        read_image(
            samples[static_cast<std::size_t>(i)].path,
            options.decode,
            files_of(options));
      });
  std::vector<Error> bad;
  std::vector<ImageSample> good;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (const auto& error = errors[i]) {
      bad.push_back(*error);
    } else {
      good.push_back(std::move(samples[i]));
    }
  }
  samples = std::move(good);
  return bad;
}

// Folders of classes in a folder more are no class.
// Errors: throws kNotFound (E_NO_DATA) for pictures in several folders of the
// only class.
void check_only_class(
    const std::string& folder,
    const std::vector<ImageSample>& samples) {
  std::set<std::string> inner;
  for (const ImageSample& sample : samples) {
    const std::string rest = sample.path.substr(folder.size() + 1);
    inner.insert(rest.substr(0, rest.find('/') + 1)); // empty: right there
  }
  if (inner.size() > 1 && !inner.contains("")) {
    raise(
        {.code = ErrorCode::kNotFound,
         .op = "data.open",
         .message = format(
             "there is one class, '{}', and its images are in {} folders",
             escape(base_name(folder)),
             inner.size()),
         .hint = format("if those are the classes: {}", folder),
         .path = folder,
         .detail = "E_NO_DATA"});
  }
}

} // namespace

ImageFolder::ImageFolder(
    std::vector<ImageSample> samples,
    std::vector<std::string> classes,
    ImageFolderOptions options,
    std::vector<Error> bad_images)
    : samples_(std::move(samples)),
      classes_(std::move(classes)),
      options_(internal::checked_images(std::move(options))),
      transform_(
          {.channels = options_.decode.channels,
           .height = options_.size,
           .width = options_.size},
          options_.transform),
      bad_images_(std::move(bad_images)) {
  for (const ImageSample& sample : samples_) {
    if (sample.label < 0 || sample.label >= num_classes()) {
      bad_option(format(
          "the label of {} is no class; expected 0 to {}, got {}",
          sample.path,
          num_classes() - 1,
          sample.label));
    }
  }
  if (options_.skip_bad_images) {
    bad_images_ = take_out_bad(samples_, options_);
  }
  pictures_ = std::make_shared<internal::PictureReader>(
      internal::PictureOptions{.images = options_},
      size(),
      [this](std::int64_t i) { return files_of(samples_, i); });
}

std::int64_t ImageFolder::size() const {
  return std::ssize(samples_);
}

std::vector<std::int64_t> ImageFolder::sample_shape() const {
  return {options_.decode.channels, options_.size, options_.size};
}

std::int64_t ImageFolder::num_classes() const {
  return std::ssize(classes_);
}

PixelFormat ImageFolder::pixel_format() const {
  return {
      .shape = sample_shape(),
      .mean = options_.transform.mean,
      .std = options_.transform.std};
}

std::string ImageFolder::sample_name(std::int64_t index) const {
  internal::check_index(index, size());
  return samples_[static_cast<std::size_t>(index)].path;
}

std::uint64_t ImageFolder::digest() const {
  std::vector<std::int64_t> labels;
  labels.reserve(samples_.size());
  for (const ImageSample& sample : samples_) {
    labels.push_back(sample.label);
  }
  return internal::hash_of(
      labels.data(),
      labels.size() * sizeof(labels[0]),
      internal::digest_of_files(
          size(),
          [this](std::int64_t i, const auto& visit) {
            visit(samples_[static_cast<std::size_t>(i)].path);
          },
          files_of(options_)));
}

void ImageFolder::read_targets(
    std::span<const std::int64_t> indices,
    TargetRows targets) const {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    internal::check_index(indices[i], size());
    targets.classes[i] = samples_[static_cast<std::size_t>(indices[i])].label;
  }
}

void ImageFolder::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    TargetRows targets) const {
  read_targets(indices, targets);
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> scratch;
  float* out = images.data();
  for (const std::int64_t index : indices) {
    const std::uint8_t* image =
        pictures_->read(index, files_of(samples_, index), epoch, pixels);
    transform_.apply(image, index, epoch, scratch, out);
    out += transform_.shape().numel();
  }
}

Image ImageFolder::picture(std::int64_t index, std::int64_t epoch) const {
  const ImageShape& shape = transform_.shape();
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::int64_t target = 0;
  read({&index, 1}, epoch, values, std::span(&target, 1));
  Image image{.shape = shape};
  image.pixels.resize(values.size());
  const std::int64_t plane = shape.height * shape.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      const float value = values[static_cast<std::size_t>(c * plane + i)] *
                              transform_.options().std[channel] +
                          transform_.options().mean[channel];
      image.pixels[static_cast<std::size_t>(i * shape.channels + c)] =
          static_cast<std::uint8_t>(std::lround(255.0F * value));
    }
  }
  return image;
}

Image ImageFolder::plain_picture(std::int64_t index) const {
  const Image image = pictures_->decoded(files_of(samples_, index)).image;
  return internal::fitted(image, options_.size, options_.size);
}

std::shared_ptr<ImageFolder> image_folder(
    const std::string& directory,
    const ImageFolderOptions& options) {
  FileSystem& fs = files_of(options);
  const std::vector<std::string> classes = folders_in(fs, directory);
  if (classes.empty()) {
    no_data("the folder has no folders, so there are no classes", directory);
  }
  std::vector<ImageSample> samples;
  internal::ForeignImages foreign;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::string folder = format("{}/{}", directory, classes[label]);
    std::vector<std::string> paths =
        internal::images_below(fs, folder, foreign);
    if (paths.empty()) {
      foreign.warn();
      no_data("the class has no images", folder);
    }
    for (std::string& path : paths) {
      samples.push_back(
          {.path = std::move(path), .label = static_cast<std::int64_t>(label)});
    }
  }
  foreign.warn();
  if (classes.size() == 1) {
    check_only_class(format("{}/{}", directory, classes[0]), samples);
  }
  return std::make_shared<ImageFolder>(std::move(samples), classes, options);
}

} // namespace lockstep
