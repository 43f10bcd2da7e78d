// SPDX-License-Identifier: BSD-3-Clause
//
// Each operation against torchvision's, on equal numbers. The values are those
// of tests/oracle/data_augment.py; LOCKSTEP_AUGMENT_GOLDEN names another file
// of it, with larger images.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_geometry.h"
#include "lockstep/data/internal/image_operations.h"
#include "lockstep/data/internal/mix_draws.h"

namespace lockstep::internal {
namespace {

using Numbers = std::vector<double>;

std::int64_t whole(double number) {
  return static_cast<std::int64_t>(number);
}

Region region_of(const Numbers& n) {
  return {
      .top = whole(n[0]),
      .left = whole(n[1]),
      .height = whole(n[2]),
      .width = whole(n[3])};
}

AffineMap affine_of(const Numbers& n) {
  AffineMap map{
      .angle = n[0],
      .right = n[1],
      .down = n[2],
      .scale = n[3],
      .shear_x = n[4],
      .shear_y = n[5]};
  if (n.size() > 6) {
    map.is_bilinear = n[6] != 0;
    map.fill = static_cast<std::uint8_t>(n[7]);
  }
  return map;
}

Image padded(const Image& image, const Numbers& n) {
  return cropped(
      image,
      {.top = -whole(n[1]),
       .left = -whole(n[0]),
       .height = image.shape.height + whole(n[1] + n[3]),
       .width = image.shape.width + whole(n[0] + n[2])},
      static_cast<std::uint8_t>(n[4]));
}

Image flipped(const Image& image, void (*flip)(AnnotatedImage&)) {
  AnnotatedImage sample{.image = image};
  flip(sample);
  return sample.image;
}

Image resized_crop(const Image& image, const Numbers& n) {
  return resized(image, region_of(n), whole(n[4]), whole(n[5]));
}

// The map of a case "affine" or "rotate".
AffineMap map_of(const std::string& name, const Numbers& n) {
  return name == "affine" ? affine_of(n)
                          : AffineMap{
                                .angle = -n[0],
                                .is_bilinear = n[1] != 0,
                                .fill = static_cast<std::uint8_t>(n[2])};
}

// True if an output pixel lies half way between two of the input: there the
// last bits decide, and torchvision's are float32's.
bool is_tie(const AffineMap& map, const ImageShape& shape, std::size_t pixel) {
  const auto m = inverse_matrix(map, shape);
  const double middle_x = static_cast<double>(shape.width - 1) / 2;
  const double middle_y = static_cast<double>(shape.height - 1) / 2;
  const auto place = static_cast<std::int64_t>(pixel);
  const double x = static_cast<double>(place % shape.width) - middle_x;
  const std::int64_t row = place / shape.width;
  const double y = static_cast<double>(row) - middle_y;
  const auto is_half = [](double value) {
    return std::abs(value - std::floor(value) - 0.5) < 1e-4;
  };
  return is_half(m[0] * x + m[1] * y + m[2] + middle_x) ||
         is_half(m[3] * x + m[4] * y + m[5] + middle_y);
}

// What moves pixels, or takes several numbers.
using Function = std::function<Image(const Image&, const Numbers&)>;
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> kFunctions{
      {"blur",
       [](Image image, const Numbers& n) {
         gaussian_blur(image, whole(n[0]), n[1]);
         return image;
       }},
      {"hflip",
       [](const Image& image, const Numbers&) {
         return flipped(image, flip_horizontally);
       }},
      {"vflip",
       [](const Image& image, const Numbers&) {
         return flipped(image, flip_vertically);
       }},
      {"crop",
       [](const Image& image, const Numbers& n) {
         return cropped(image, region_of(n), 0);
       }},
      {"pad", padded},
      {"resized_crop", resized_crop},
      {"resized_crop_native", resized_crop},
      {"rotate",
       [](const Image& image, const Numbers& n) {
         return moved(image, map_of("rotate", n));
       }},
      {"affine",
       [](const Image& image, const Numbers& n) {
         return moved(image, map_of("affine", n));
       }},
      {"erase",
       [](Image image, const Numbers& n) {
         Region region = region_of(n);
         region.height =
             std::min(region.height, image.shape.height - region.top);
         region.width = std::min(region.width, image.shape.width - region.left);
         erase(image, region, static_cast<std::uint8_t>(n[4]));
         return image;
       }},
  };
  return kFunctions;
}

Image result_of(
    const std::string& name,
    const Image& image,
    const Numbers& numbers) {
  if (name.starts_with("auto_")) {
    AnnotatedImage sample{.image = image};
    apply_auto_operation(sample, name.substr(5), numbers.at(0));
    return sample.image;
  }
  const auto found = functions().find(name);
  if (found != functions().end()) {
    return found->second(image, numbers);
  }
  const ImageOperation* const operation = find_operation(name);
  if (operation == nullptr) {
    ADD_FAILURE() << "no operation " << name;
    return image;
  }
  Image out = image;
  operation->apply(out, numbers.empty() ? 0 : numbers[0]);
  return out;
}

// How results may differ from torchvision's.
struct Difference {
  std::int64_t values = 0;
  std::int64_t differing = 0;
  int largest = 0;
  /// Of a map to the nearest pixel.
  std::int64_t ties = 0;
};

class Golden : public testing::Test {
 protected:
  void SetUp() override {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables
    const char* const other = std::getenv("LOCKSTEP_AUGMENT_GOLDEN");
    text_ = read_text(
                real_fs(),
                other != nullptr ? other
                                 : std::string(LOCKSTEP_SOURCE_DIR) +
                                       "/tests/data/golden/augment.bin")
                .value();
    while (place_ < text_.size()) {
      read_record();
    }
  }

  // The words of each line with that first one.
  std::vector<std::vector<std::string>> lines(const std::string& word) {
    return lines_[word];
  }

  std::map<std::string, Difference> differences_ = {};

 private:
  void read_record() {
    const std::size_t end = text_.find('\n', place_);
    std::istringstream words(text_.substr(place_, end - place_));
    place_ = end + 1;
    std::string kind;
    words >> kind;
    if (kind == "image") {
      images_.push_back(read_image_of(words));
    } else if (kind == "case") {
      read_case(words);
    } else {
      std::vector<std::string> all;
      for (std::string word; words >> word;) {
        all.push_back(word);
      }
      lines_[all.at(0)].push_back(all);
    }
  }

  Image read_image_of(std::istringstream& words) {
    Image image;
    words >> image.shape.height >> image.shape.width >> image.shape.channels;
    const auto size = static_cast<std::size_t>(image.shape.numel());
    image.pixels.assign(
        text_.begin() + static_cast<std::ptrdiff_t>(place_),
        text_.begin() + static_cast<std::ptrdiff_t>(place_ + size));
    place_ += size;
    return image;
  }

  void read_case(std::istringstream& words) {
    std::string name;
    words >> name;
    Numbers numbers;
    std::string word;
    while (words >> word && word != ":") {
      numbers.push_back(std::stod(word));
    }
    std::size_t index = 0;
    words >> index;
    const Image expected = read_image_of(words);
    const Image ours = result_of(name, images_.at(index), numbers);
    ASSERT_EQ(ours.shape, expected.shape) << name;
    const bool is_map = name == "affine" || name == "rotate";
    const AffineMap map = is_map ? map_of(name, numbers) : AffineMap();
    Difference& difference =
        differences_[map.is_bilinear ? name + " bilinear" : name];
    for (std::size_t i = 0; i < ours.pixels.size(); ++i) {
      const auto pixel = i / static_cast<std::size_t>(ours.shape.channels);
      const int by = std::abs(ours.pixels[i] - expected.pixels[i]);
      ++difference.values;
      if (by > 0 && is_map && !map.is_bilinear &&
          is_tie(map, ours.shape, pixel)) {
        ++difference.ties;
      } else if (by > 0) {
        ++difference.differing;
        difference.largest = std::max(difference.largest, by);
      }
    }
  }

  std::string text_ = {};
  std::size_t place_ = 0;
  std::vector<Image> images_ = {};
  std::map<std::string, std::vector<std::vector<std::string>>> lines_ = {};
};

// All bits but those of float32 sums, which differ by one level: LibTorch sums
// in another order, and computes places in float32.
TEST_F(Golden, PixelsAreTorchvisions) {
  const std::map<std::string, double> allowed{
      {"affine bilinear", 1e-3},
      {"rotate bilinear", 1e-3},
      {"blur", 1e-3},
      {"resized_crop_native", 0.15}};
  EXPECT_EQ(differences_.size(), 37U);
  for (const auto& [name, difference] : differences_) {
    std::cout << name << ": " << difference.differing << " of "
              << difference.values << " differ, by at most "
              << difference.largest << "; ties " << difference.ties << "\n";
    EXPECT_GT(difference.values, 100) << name;
    const auto found = allowed.find(name);
    const double share = found == allowed.end() ? 0 : found->second;
    EXPECT_LE(difference.largest, 1) << name;
    EXPECT_LE(
        static_cast<double>(difference.differing),
        share * static_cast<double>(difference.values))
        << name;
    EXPECT_LE(difference.ties * 200, difference.values) << name;
  }
}

TEST_F(Golden, StrengthsAreTorchvisions) {
  for (const char* table : {"rand", "trivial"}) {
    EXPECT_EQ(lines(table).size(), table[0] == 'r' ? 42U : 14U);
    for (const auto& words : lines(table)) {
      const std::string& name = words.at(1);
      const ImageShape shape{
          .height = std::stol(words.at(2)),
          .width = std::stol(words.at(3))};
      const auto all = auto_operations();
      const auto operation = std::ranges::find(all, name, &AutoOperation::name);
      ASSERT_NE(operation, all.end()) << name;
      EXPECT_EQ(operation->has_sign, words.at(4) == "1") << name;
      for (std::int64_t bin = 0; bin < kAutoBins; ++bin) {
        const double ours = table[0] == 'r'
                                ? rand_augment_strength(name, bin, shape)
                                : trivial_augment_strength(name, bin);
        const double theirs =
            std::stod(words.at(static_cast<std::size_t>(5 + bin)));
        EXPECT_FLOAT_EQ(static_cast<float>(ours), static_cast<float>(theirs))
            << table << " " << name << " " << bin;
        if (name.starts_with("translate") || name == "posterize") {
          EXPECT_EQ(whole(ours), whole(theirs)) << name << " " << bin;
        }
      }
    }
  }
}

// Moves a box by the operation that `words` name, up to ":".
Box moved_box(const std::vector<std::string>& words) {
  Numbers n;
  for (auto word = words.begin() + 2; *word != ":"; ++word) {
    n.push_back(std::stod(*word));
  }
  AnnotatedImage sample{
      .image = cropped({}, {.height = 40, .width = 60}, 0),
      .boxes = {{.left = 10, .top = 5, .right = 30, .bottom = 25}}};
  const std::string& name = words.at(1);
  if (name == "hflip") {
    flip_horizontally(sample);
  } else if (name == "vflip") {
    flip_vertically(sample);
  } else if (name == "crop") {
    crop(sample, region_of(n), 0);
  } else if (name == "resized_crop") {
    crop_and_resize(sample, region_of(n), whole(n[4]), whole(n[5]));
  } else {
    move(sample, affine_of(n));
  }
  return sample.boxes.at(0);
}

TEST_F(Golden, BoxesAreTorchvisions) {
  EXPECT_EQ(lines("box").size(), 5U);
  for (const auto& words : lines("box")) {
    const Box box = moved_box(words);
    const std::size_t first = words.size() - 4;
    const std::array ours{box.left, box.top, box.right, box.bottom};
    for (std::size_t i = 0; i < 4; ++i) {
      // torchvision computes in float32.
      EXPECT_NEAR(ours.at(i), std::stod(words.at(first + i)), 1e-4)
          << words.at(1) << " " << i;
    }
  }
}

TEST_F(Golden, BoxesOfCutMixAreTorchvisions) {
  EXPECT_EQ(lines("cut").size(), 40U);
  for (const auto& words : lines("cut")) {
    const auto number = [&](std::size_t i) { return std::stol(words.at(i)); };
    const CutBox box = cut_box(
        std::stod(words.at(1)),
        number(2),
        number(3),
        number(4),
        number(5));
    const CutBox theirs{
        .left = number(7),
        .top = number(8),
        .right = number(9),
        .bottom = number(10)};
    EXPECT_EQ(box, theirs) << words.at(1);
    const double share =
        1.0 -
        static_cast<double>((box.right - box.left) * (box.bottom - box.top)) /
            static_cast<double>(number(4) * number(5));
    EXPECT_EQ(share, std::stod(words.at(11)));
  }
}

} // namespace
} // namespace lockstep::internal
