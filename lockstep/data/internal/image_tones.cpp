// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "lockstep/data/internal/image_operations.h"

namespace lockstep::internal {
namespace {

constexpr std::size_t kLevels = 256;

using Table = std::array<std::uint8_t, kLevels>;
using Counts = std::array<std::int64_t, kLevels>;

template <class Function>
void map_levels(Image& image, const Function& function) {
  Table table{};
  for (std::size_t level = 0; level < kLevels; ++level) {
    table.at(level) = function(static_cast<std::uint8_t>(level));
  }
  map_pixels(image, table);
}

// How many pixels of a channel have each level.
Counts counts_of(const Image& image, std::int64_t channel) {
  Counts counts{};
  for (auto i = static_cast<std::size_t>(channel); i < image.pixels.size();
       i += static_cast<std::size_t>(image.shape.channels)) {
    ++counts.at(image.pixels[i]);
  }
  return counts;
}

// Each channel by a table that its counts decide.
template <class Function>
void map_channels(Image& image, const Function& table_of) {
  std::vector<std::uint8_t> tables;
  for (std::int64_t c = 0; c < image.shape.channels; ++c) {
    const Table table = table_of(counts_of(image, c));
    tables.insert(tables.end(), table.begin(), table.end());
  }
  map_pixels(image, tables);
}

Table unchanged() {
  Table table{};
  std::iota(table.begin(), table.end(), std::uint8_t{0});
  return table;
}

// The darkest level that occurs becomes 0, the brightest 255.
Table stretched(const Counts& counts) {
  const auto occurs = [](std::int64_t count) { return count > 0; };
  const auto darkest = std::ranges::find_if(counts, occurs) - counts.begin();
  const auto brightest =
      counts.rend() - std::find_if(counts.rbegin(), counts.rend(), occurs) - 1;
  if (darkest >= brightest) {
    return unchanged();
  }
  constexpr auto kInverse = static_cast<float>(1.0 / 255.0);
  const float scale = static_cast<float>(brightest - darkest) * kInverse;
  Table table{};
  for (auto level = darkest; level <= brightest; ++level) {
    const float value = static_cast<float>(level - darkest) / scale;
    table.at(static_cast<std::size_t>(level)) =
        static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
  }
  return table;
}

// As Pillow's `ImageOps.equalize`: all levels about equally often, counted
// without the brightest one that occurs.
Table equalized(const Counts& counts) {
  const auto brightest =
      std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t count) {
        return count > 0;
      });
  const std::int64_t total =
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t step =
      brightest == counts.rend() ? 0 : (total - *brightest) / 255;
  if (step == 0) {
    return unchanged();
  }
  Table table{};
  std::int64_t darker = 0;
  for (std::size_t level = 0; level < kLevels; ++level) {
    table.at(level) = static_cast<std::uint8_t>(
        std::min<std::int64_t>((darker + step / 2) / step, 255));
    darker += counts.at(level);
  }
  table.front() = 0;
  return table;
}

} // namespace

void map_pixels(Image& image, std::span<const std::uint8_t> table) {
  if (table.size() == kLevels) {
    for (std::uint8_t& pixel : image.pixels) {
      pixel = table[pixel];
    }
    return;
  }
  const auto channels = static_cast<std::size_t>(image.shape.channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      image.pixels[i + c] = table[c * kLevels + image.pixels[i + c]];
    }
  }
}

void posterize(Image& image, double bits) {
  const int removed = std::clamp(8 - static_cast<int>(bits), 0, 8);
  const auto mask = static_cast<std::uint8_t>(0xFFU << removed);
  map_levels(image, [&](std::uint8_t level) {
    return static_cast<std::uint8_t>(level & mask);
  });
}

void solarize(Image& image, double threshold) {
  map_levels(image, [&](std::uint8_t level) {
    return level >= threshold ? static_cast<std::uint8_t>(255 - level) : level;
  });
}

void invert(Image& image, double /*unused*/) {
  solarize(image, 0);
}

void autocontrast(Image& image, double /*unused*/) {
  map_channels(image, stretched);
}

void equalize(Image& image, double /*unused*/) {
  map_channels(image, equalized);
}

std::span<const ImageOperation> image_operations() {
  static constexpr std::array kOperations{
      ImageOperation{"autocontrast", autocontrast},
      ImageOperation{"brightness", change_brightness},
      ImageOperation{"contrast", change_contrast},
      ImageOperation{"equalize", equalize},
      ImageOperation{"grayscale", to_grayscale},
      ImageOperation{"hue", change_hue},
      ImageOperation{"invert", invert},
      ImageOperation{"posterize", posterize},
      ImageOperation{"saturation", change_saturation},
      ImageOperation{"sharpness", change_sharpness},
      ImageOperation{"solarize", solarize},
  };
  return kOperations;
}

const ImageOperation* find_operation(std::string_view name) {
  const auto all = image_operations();
  const auto found = std::ranges::find(all, name, &ImageOperation::name);
  return found == all.end() ? nullptr : &*found;
}

} // namespace lockstep::internal
