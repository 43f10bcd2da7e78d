// SPDX-License-Identifier: BSD-3-Clause
//
// What all data sets of image files share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// Nothing where nothing is random.
std::optional<Augmenter> augmenter_for(const ImageFolderOptions& options);

/// With mean, std and the smallest size of decoding filled in.
/// Errors: throws kInvalidArgument (E_DATA_OPTION) for a size out of range.
ImageFolderOptions checked_images(ImageFolderOptions options);

/// What decides the pixels of a file, for a cache: "2 3 224 1 448".
std::string recipe_of(const ImageFolderOptions& options);

/// Calls `read` for each of `count` samples, several at once, and gives what
/// was wrong with the images and masks that are damaged or may not be read. A
/// disk that fails is thrown.
std::vector<std::optional<Error>> image_errors(
    std::int64_t count,
    const std::function<void(std::int64_t index)>& read);

/// Calls `work` for each number below `count`, several at once.
/// Errors: rethrows what the first call that failed threw.
void for_each_sample(
    std::int64_t count,
    const std::function<void(std::int64_t index)>& work);

} // namespace lockstep::internal
