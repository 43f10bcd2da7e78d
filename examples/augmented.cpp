// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures that change at random in each epoch, a sheet that shows them, and
// samples of a batch mixed with each other.
#include <filesystem>
#include <iostream>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

// Pictures of 48 x 32 pixels in two classes, bright in one corner.
void make_pictures(const std::string& dir) {
  for (std::int64_t i = 0; i < 12; ++i) {
    const std::string folder = dir + (i % 2 == 0 ? "/left" : "/right");
    std::filesystem::create_directories(folder);
    ls::Image image{.shape = {.channels = 3, .height = 32, .width = 48}};
    for (std::int64_t p = 0; p < image.shape.numel(); ++p) {
      const std::int64_t x = p / 3 % 48;
      const std::int64_t level = i % 2 == 0 ? 47 - x : x;
      image.pixels.push_back(
          static_cast<std::uint8_t>(level * (p % 3 + i) / 3));
    }
    ls::write_png(folder + "/" + std::to_string(i) + ".png", image);
  }
}

int main() try {
  const std::string dir =
      (std::filesystem::temp_directory_path() / "lockstep_augmented").string();
  make_pictures(dir);
  const ls::Augment augment{
      {{.name = "random_resized_crop", .values = {{"scale", {0.3, 1}}}},
       {.name = "vertical_flip"},
       {.name = "color_jitter",
        .values = {{"brightness", {0.4}}, {"hue", {0.1}}}},
       {.name = "erasing", .probability = 0.25}}};
  const auto [train, val] =
      ls::image_folders(dir, {.size = 24, .augment = augment});
  const ls::Image sheet = ls::augmented_sheet(*train, {.samples = 4});
  ls::write_png(dir + "/seen.png", sheet); // look at it first
  std::cout << train->size() << " pictures to train with, " << val->size()
            << " to test; seen.png has " << sheet.shape.width << " x "
            << sheet.shape.height << " pixels\n";

  ls::Loader loader(train, {.batch_size = 5});
  std::int64_t number = 0;
  for (const auto& batch : loader) {
    const ls::Batch mixed = ls::mix_up(
        batch,
        {.alpha = 0.2,
         .num_classes = train->num_classes(),
         .epoch = loader.epoch(),
         .batch = number++});
    std::cout << "images " << mixed.images.sizes() << ", targets "
              << mixed.targets.sizes() << " " << mixed.targets.scalar_type()
              << "\n";
  }
  std::filesystem::remove_all(dir);
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
