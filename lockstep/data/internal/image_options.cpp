// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_options.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// ImageNet's, as torchvision's recipes have them; grey: their means.
TransformOptions with_defaults(const ImageFolderOptions& options) {
  TransformOptions transform = options.transform;
  const bool is_grey = options.decode.channels == 1;
  if (transform.mean.empty()) {
    transform.mean =
        is_grey ? std::vector{0.449F} : std::vector{0.485F, 0.456F, 0.406F};
  }
  if (transform.std.empty()) {
    transform.std =
        is_grey ? std::vector{0.226F} : std::vector{0.229F, 0.224F, 0.225F};
  }
  return transform;
}

// Damaged, of another format, without permission, or gone: not a disk that
// fails.
bool is_about_image(const Error& error) {
  constexpr std::array<std::string_view, 4> kDetails{
      "E_MASK",
      "E_MASK_SIZE",
      "E_PERMISSION",
      "E_NOT_REGULAR"};
  return error.detail.starts_with("E_IMAGE") ||
         error.code == ErrorCode::kNotFound ||
         std::ranges::find(kDetails, error.detail) != kDetails.end();
}

} // namespace

std::optional<Augmenter> augmenter_for(const ImageFolderOptions& options) {
  if (options.augment.steps.empty()) {
    return std::nullopt;
  }
  return Augmenter(
      options.augment,
      {.height = options.size,
       .width = options.size,
       .seed = options.transform.seed});
}

ImageFolderOptions checked_images(ImageFolderOptions options) {
  constexpr std::int64_t kMaxSize = 8192;
  if (options.size < 1 || options.size > kMaxSize) {
    raise_bad_option(format(
        "the size of images must be 1 to {}, got {}",
        kMaxSize,
        options.size));
  }
  // Twice what is needed, as Pillow's `thumbnail` keeps it.
  const auto augmenter = augmenter_for(options);
  options.decode.min_side =
      augmenter ? augmenter->min_side() : 2 * options.size;
  options.transform = with_defaults(options);
  return options;
}

std::string recipe_of(const ImageFolderOptions& options) {
  // The first number is that of the decoders and the resizing: it grows where
  // they give other pixels.
  return format(
      "2 {} {} {} {}",
      options.decode.channels,
      options.size,
      options.decode.orient,
      options.decode.min_side);
}

void for_each_sample(
    std::int64_t count,
    const std::function<void(std::int64_t index)>& work) {
  constexpr std::int64_t kAtATime = 16;
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto take = [&] {
    try {
      for (std::int64_t i = next.fetch_add(kAtATime); i < count;
           i = next.fetch_add(kAtATime)) {
        for (std::int64_t j = i; j < std::min(i + kAtATime, count); ++j) {
          work(j);
        }
      }
    } catch (...) {
      const std::scoped_lock lock(mutex);
      error = error ? error : std::current_exception();
      next = count;
    }
  };
  const auto more = std::min<std::int64_t>(
      (count - 1) / kAtATime,
      std::int64_t{usable_cores()} - 1);
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(std::max<std::int64_t>(more, 0)));
    for (std::int64_t i = 0; i < more; ++i) {
      threads.emplace_back(take);
    }
    take();
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

std::vector<std::optional<Error>> image_errors(
    std::int64_t count,
    const std::function<void(std::int64_t index)>& read) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  for_each_sample(count, [&](std::int64_t i) {
    try {
      read(i);
    } catch (const Exception& exception) {
      if (!is_about_image(exception.error())) {
        throw;
      }
      errors[static_cast<std::size_t>(i)] = exception.error();
    }
  });
  return errors;
}

} // namespace lockstep::internal
