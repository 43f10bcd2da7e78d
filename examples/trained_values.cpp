// SPDX-License-Identifier: BSD-3-Clause
//
// A table of pictures and numbers, and a network that measures them: the third
// walk of docs/own_data.md in C++. What goes on from it:
//   lockstep eval points_run --data points/points.csv
//   lockstep predict points_run points/images
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

// A bright spot, and where it is: from 0 to 1, right and down.
void draw_points(const std::string& folder, int pictures) {
  std::filesystem::create_directories(folder + "/images");
  std::ofstream table(folder + "/points.csv");
  table << "path,x,y\n";
  constexpr unsigned kSize = 32;
  std::mt19937 random(0);
  for (int i = 0; i < pictures; ++i) {
    ls::Image image{.shape = {.channels = 3, .height = kSize, .width = kSize}};
    const unsigned top = random() % 26;
    const unsigned left = random() % 26;
    for (unsigned p = 0; p < kSize * kSize; ++p) {
      const bool is_spot = p / kSize - top < 6 && p % kSize - left < 6;
      for (int channel = 0; channel < 3; ++channel) {
        const unsigned level = random() % 50 + (is_spot ? 200 : 0);
        image.pixels.push_back(static_cast<std::uint8_t>(level));
      }
    }
    const std::string name = "images/" + std::to_string(i) + ".png";
    ls::write_png(std::filesystem::path(folder) / name, image);
    table << name << ',' << (left + 3.0) / kSize << ',' << (top + 3.0) / kSize
          << '\n';
  }
}

int main() try {
  draw_points("points", 200);

  const ls::DatasetParts data =
      ls::open_dataset("csv", "points/points.csv", {.image_size = 32});
  torch::manual_seed(0);
  ls::train::Trainer trainer(
      {.batch_size = 16,
       .epochs = 20,
       .opt = "adam",
       .lr = 0.001,
       .output = "points_run"},
      {.own = {
           .model = ls::make_model(
               "mlp",
               {.num_classes = 2, .image_height = 32, .image_width = 32}),
           .train_data = data.train,
           .test_data = data.test,
           .model_name = "mlp"}});
  const ls::train::TrainResult result = trainer.run();
  const bool has_learned = result.best.value_or(1) < 0.1;
  std::cout << result.best_by.column << " of the best epoch is "
            << (has_learned ? "below 0.1" : "0.1 or more") << "\n";
} catch (const ls::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
