// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures in folders, one for each class, and a network that learns them: the
// first walk of docs/own_data.md in C++. What goes on from it:
//   lockstep eval animals_run --data animals
//   lockstep predict animals_run animals/cat
#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"
#include "lockstep/train/trainer.h"

namespace ls = lockstep;

// Noise around a colour of its own, in sizes that differ.
void draw_pictures(const std::string& folder, int color) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(color);
  for (int i = 0; i < 40; ++i) {
    ls::Image image{
        .shape = {.channels = 3, .height = 20 + i, .width = 60 - i}};
    for (std::int64_t p = 0; p < image.shape.numel(); ++p) {
      const unsigned level = random() % 128 + (p % 3 == color ? 100 : 0);
      image.pixels.push_back(static_cast<std::uint8_t>(level));
    }
    ls::write_png(folder + "/" + std::to_string(i) + ".png", image);
  }
}

int main() try {
  draw_pictures("animals/cat", 0);
  draw_pictures("animals/dog", 1);
  draw_pictures("animals/bird", 2);

  const auto [train, val] = ls::image_folders(
      "animals",
      {.size = 32, .augment = ls::named_augment("light")});
  torch::manual_seed(0);
  ls::train::Trainer trainer(
      {.batch_size = 8, .epochs = 8, .lr = 0.005, .output = "animals_run"},
      {.should_stop = ls::train::stop_on_signals(),
       .own = {
           .model = ls::resnet18({.num_classes = train->num_classes()}),
           .train_data = train,
           .test_data = val,
           .model_name = "resnet18"}});
  const ls::train::TrainResult result = trainer.run();
  const bool has_learned = result.best.value_or(0) >= 90;
  std::cout << result.best_by.column << " of the best epoch is "
            << (has_learned ? "90 or more" : "below 90") << "\n";
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
