// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep data`: what it says of folders and files.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/images.h"
#include "tests/cli_train/process.h"
#include "tests/support/json_schema.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::cli_train {
namespace {

namespace stdfs = std::filesystem;
using nlohmann::json;
using test::Process;
using testing::HasSubstr;

class DataCommand : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    stdfs::create_directories(stdfs::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }
  void put_image(
      const std::string& name,
      std::uint8_t first,
      std::int64_t width,
      std::int64_t channels = 3) const {
    stdfs::create_directories(stdfs::path(dir_ / name).parent_path());
    Image image{.shape = {.channels = channels, .height = 8, .width = width}};
    image.pixels.assign(static_cast<std::size_t>(image.shape.numel()), first);
    write_png(dir_ / name, image);
  }
  void put_animals() const {
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i) + ".png";
      const auto pixel = static_cast<std::uint8_t>(51 * i);
      put_image("animals/train/cat/" + number, pixel, 8);
      put_image("animals/train/\u732b/" + number, pixel, 9 + i);
    }
    put_image("animals/val/cat/a.png", 7, 8);
    put_image("animals/val/\u732b/b.png", 51, 10); // as train/.../1.png
    put("animals/train/cat/cut.png", "\x89PNG\r\n\x1a\n");
  }
  /// What it printed.
  std::string output(const std::vector<std::string>& more, int status = 0) {
    std::vector<std::string> args{"data"};
    args.insert(args.end(), more.begin(), more.end());
    Process program(args);
    EXPECT_EQ(program.wait(), status) << program.errors();
    errors_ = program.errors();
    return program.output();
  }

  const test::ScratchDir dir_;
  std::string errors_;
};

TEST_F(DataCommand, TellsWhatAFolderHolds) {
  put_animals();
  const std::string folder = dir_ / "animals";
  EXPECT_EQ(
      output({folder}, 3),
      folder + ": folder\n" +
          "                  training        test\n"
          "  samples                7           2\n"
          "  cat                    3           1\n"
          "  \u732b                      3           1\n"
          "images of 4 sizes, 8 x 8 to 11 x 8 pixels, 3 channels\n"
          "mean 0.2074 0.2074 0.2074, std 0.1631 0.1631 0.1631 of the training "
          "part, pixels / 255\n"
          "damaged: 1 sample\n"
          "  " +
          folder +
          "/train/cat/cut.png: the image is damaged: the file ends too early\n"
          "1 sample is of the test in the training part, too\n"
          "  " +
          folder + "/val/\u732b/b.png = " + folder + "/train/\u732b/1.png\n");
}

TEST_F(DataCommand, AnswersInJson) {
  put_animals();
  const json document = json::parse(output({dir_ / "animals", "--json"}, 3));
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  const json& result = document["result"];
  EXPECT_EQ(result["classes"], json({"cat", "\u732b"}));
  EXPECT_EQ(result["train"]["class_counts"], json({3, 3}));
  EXPECT_EQ(result["smallest"], json({8, 8}));
  EXPECT_EQ(result["damaged"][0]["code"], "E_IMAGE");
  EXPECT_EQ(result["in_both"].size(), 1U);
}

TEST_F(DataCommand, WritesASheetOfTen) {
  for (int i = 0; i < 12; ++i) {
    const std::string name = std::to_string(i) + ".png";
    const auto number = static_cast<std::uint8_t>(i % 3);
    put_image("cells/train/images/" + name, 200, 8);
    put_image("cells/train/masks/" + name, number, 8, 1);
    put_image("cells/val/images/" + name, 100, 8);
    put_image("cells/val/masks/" + name, 0, 8, 1);
  }
  const std::string path = dir_ / "sheet.png";
  const std::string text = output({dir_ / "cells", "--sheet", path});
  EXPECT_THAT(text, HasSubstr("cells: segmentation\n"));
  EXPECT_THAT(text, HasSubstr("  0                33.33 %    100.00 %\n"));
  EXPECT_THAT(text, HasSubstr(path + ":\n  "));
  const Image sheet = read_image(path);
  EXPECT_EQ(sheet.shape.width, 5 * (2 * 128 + 4) + 4);
  EXPECT_EQ(sheet.shape.height, 2 * (128 + 4) + 4);
  const auto pixel = [&](std::int64_t y, std::int64_t x) {
    const auto at = static_cast<std::size_t>(3 * (y * sheet.shape.width + x));
    return std::vector<int>(
        sheet.pixels.begin() + static_cast<std::ptrdiff_t>(at),
        sheet.pixels.begin() + static_cast<std::ptrdiff_t>(at) + 3);
  };
  EXPECT_EQ(pixel(10, 10), (std::vector{200, 200, 200}));
  EXPECT_EQ(pixel(10, 4 + 128 + 10), (std::vector{0, 0, 0})) << "class 0";
  EXPECT_EQ(pixel(10, 4 + 260 + 128 + 10), (std::vector{128, 0, 0})) << "1";
  EXPECT_EQ(pixel(0, 0), (std::vector{128, 128, 128})) << "background";
}

TEST_F(DataCommand, TellsOfTables) {
  put("t.csv", "a,b,y\n1,2,0.5\n2,3,1.5\n3,4,2.5\n4,5,3.5\n5,6,4.5\n");
  const std::string text = output({dir_ / "t.csv", "--val-split=0.2"});
  EXPECT_THAT(text, HasSubstr("t.csv: csv\n"));
  EXPECT_THAT(text, HasSubstr("  samples                4           1\n"));
  EXPECT_THAT(text, HasSubstr("note: values to predict: 'y'\n"));
  EXPECT_THAT(text, HasSubstr("samples of 2 numbers\n"));
  EXPECT_THAT(
      output({dir_ / "t.csv", "--target", "a"}),
      HasSubstr("column 'a' has whole numbers: 5 classes"));
  output({dir_ / "t.csv", "--sheet", dir_ / "x.png"}, 2);
  EXPECT_THAT(errors_, HasSubstr("are no images"));
}

TEST_F(DataCommand, NamesMistakes) {
  output({}, 2);
  EXPECT_THAT(errors_, HasSubstr("no folder or file is named"));
  output({"a", "b"}, 2);
  EXPECT_THAT(errors_, HasSubstr("one folder or file at a time"));
  output({dir_.path(), "--val-split=2"}, 2);
  EXPECT_THAT(errors_, HasSubstr("between 0 and 1"));
  EXPECT_THAT(output({dir_.path(), "--json"}, 4), HasSubstr("E_NO_DATA"));
  output({dir_ / "gone"}, 4);
  EXPECT_THAT(errors_, HasSubstr("gone"));
  output({dir_.path(), "--data=imgs"}, 2);
  EXPECT_THAT(errors_, HasSubstr("unknown dataset 'imgs'"));
}

TEST_F(DataCommand, ReadsTheDistributionsDataSet) {
  const std::string text = output({"/usr/share/datasets/fashion-mnist"});
  EXPECT_THAT(text, HasSubstr(": fashion-mnist\n"));
  EXPECT_THAT(text, HasSubstr("  samples           60,000      10,000\n"));
  EXPECT_THAT(text, HasSubstr("mean 0.2860, std 0.3530"));
}

} // namespace
} // namespace lockstep::cli_train
