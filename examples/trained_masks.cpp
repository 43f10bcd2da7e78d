// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures with masks, and a network that finds what the masks mark: the second
// walk of docs/own_data.md in C++. What goes on from it:
//   lockstep eval streets_run --data streets
//   lockstep predict streets_run streets/images --output masks
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

// A bright square on noise, and the mask of it: 0 is road, 1 is sign.
void draw_streets(const std::string& folder, int pictures) {
  std::filesystem::create_directories(folder + "/images");
  std::filesystem::create_directories(folder + "/masks");
  std::ofstream(folder + "/classes.txt") << "road\nsign\n";
  constexpr unsigned kSize = 32;
  std::mt19937 random(0);
  for (int i = 0; i < pictures; ++i) {
    ls::Image image{.shape = {.channels = 3, .height = kSize, .width = kSize}};
    ls::Image mask{.shape = {.channels = 1, .height = kSize, .width = kSize}};
    const unsigned top = random() % 20;
    const unsigned left = random() % 20;
    for (unsigned p = 0; p < kSize * kSize; ++p) {
      const bool is_sign = p / kSize - top < 12 && p % kSize - left < 12;
      mask.pixels.push_back(is_sign ? 1 : 0);
      for (int channel = 0; channel < 3; ++channel) {
        const unsigned level = random() % 100 + (is_sign ? 120 : 0);
        image.pixels.push_back(static_cast<std::uint8_t>(level));
      }
    }
    const std::string name = std::to_string(i) + ".png";
    ls::write_png(std::filesystem::path(folder) / "images" / name, image);
    ls::write_png(std::filesystem::path(folder) / "masks" / name, mask);
  }
}

int main() try {
  draw_streets("streets", 60);

  const ls::DatasetParts data =
      ls::open_dataset("segmentation", "streets", {.image_size = 32});
  torch::manual_seed(0);
  ls::train::Trainer trainer(
      {.batch_size = 8, .epochs = 4, .lr = 0.05, .output = "streets_run"},
      {.own = {
           .model = ls::make_model(
               "unet_small",
               {.num_classes = data.train->num_classes()}),
           .train_data = data.train,
           .test_data = data.test,
           .model_name = "unet_small"}});
  const ls::train::TrainResult result = trainer.run();
  const bool has_learned = result.best.value_or(0) >= 0.8;
  std::cout << result.best_by.column << " of the best epoch is "
            << (has_learned ? "0.8 or more" : "below 0.8") << "\n";
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
