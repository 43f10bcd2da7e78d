// SPDX-License-Identifier: BSD-3-Clause
//
// What `--augment` says, by content: the steps of a file become part of the
// settings, so a checkpoint holds them, and a run goes on without the file.
//   - random_resized_crop: {scale: [0.3, 1]}     # a step, and its numbers
//   - color_jitter: {brightness: 0.4, p: 0.8}    # p: how often
//   - trivial_augment
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"

namespace lockstep::train {

/// A word for what happens to the pixels of any data (`TransformOptions`).
struct PixelMoves {
  std::string_view name = {};
  /// Units: pixels on each side; 0: no crop.
  std::int64_t crop_padding = 0;
  bool horizontal_flip = false;
};

/// All of them: "none", "flip", "crop-flip".
std::span<const PixelMoves> pixel_moves();
/// The row of a word; null for others.
const PixelMoves* find_pixel_moves(std::string_view name);

/// The list of steps in YAML `text`; `path` is for messages only.
/// Errors: throws kInvalidArgument with `path:line:column` for text that is no
/// such list (E_CONFIG_FILE), and as `Augmenter` for its steps.
Augment augment_from_yaml(const std::string& text, const std::string& path);

/// One line of YAML that reads back as the same.
std::string to_yaml(const Augment& augment);

/// `text` if it is one of the words of `pixel_moves()` and `augment_names()`;
/// else the steps in the file of that name, or in `text` itself if it begins
/// with '[', as `to_yaml` writes them.
/// Errors: as `augment_from_yaml`; throws kInvalidArgument (E_FLAG_VALUE) for
/// what is neither a word nor a file, kNotFound for a .yaml file that is not
/// there.
std::string resolved_augment(const std::string& text, FileSystem& fs);

/// The steps of a resolved text; none for words of `pixel_moves()`.
Augment augment_of(const std::string& resolved);

} // namespace lockstep::train
