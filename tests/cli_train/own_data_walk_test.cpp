// SPDX-License-Identifier: BSD-3-Clause
//
// The commands of docs/own_data.md, typed as they stand there.
#include <algorithm>
#include <filesystem>
#include <regex>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/images.h"
#include "tests/cli_train/trained_run.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A section of the document, without its title.
std::string section(const std::string& document, const std::string& title) {
  const std::string text =
      read_text(real_fs(), LOCKSTEP_SOURCE_DIR "/docs/" + document).value();
  const auto begin = text.find("\n## " + title);
  EXPECT_NE(begin, std::string::npos) << title;
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

// Lines in code blocks that begin with the program's name.
std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  bool is_code = false;
  for (const std::string& line : split(text, '\n')) {
    is_code = line.starts_with("```") ? !is_code : is_code;
    if (is_code && line.starts_with("lockstep ")) {
      commands.push_back(line);
    }
  }
  return commands;
}

// Words of each line, with one space between.
std::vector<std::string> lines_of_words(const std::string& text) {
  return split(std::regex_replace(text, std::regex("[ ]+"), " "), '\n');
}

// A folder in which the commands of a section are typed.
class OwnDataWalk : public ::testing::Test {
 protected:
  // Runs them, and gives what each printed.
  std::vector<std::string> walk(
      const std::string& title,
      const std::string& chinese_title) {
    shown_ = section("own_data.md", title);
    const std::vector<std::string> commands = commands_in(shown_);
    EXPECT_THAT(commands, SizeIs(3)) << "train, eval, predict";
    EXPECT_EQ(commands_in(section("own_data.zh.md", chinese_title)), commands);
    std::vector<std::string> printed;
    for (const std::string& command : commands) {
      const auto outcome = test::run_shell(format(
          "cd '{}'; export PATH='" LOCKSTEP_BINARY_DIR "/bin':$PATH; {}",
          dir_.path(),
          command));
      EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
      printed.push_back(outcome.out);
    }
    return printed;
  }
  void put(const std::string& name, std::string_view bytes) {
    const auto file = real_fs().create(dir_ / name, 0644).value();
    file->write(as_byte_span(bytes)).value();
    file->close().value();
  }
  [[nodiscard]] std::vector<std::string> rows_of(const std::string& file) {
    auto rows = split(read_text(real_fs(), dir_ / file).value(), '\n');
    rows.pop_back();
    return rows;
  }
  [[nodiscard]] bool has_file(const std::string& name) const {
    return std::filesystem::exists(dir_ / name);
  }

  const test::ScratchDir dir_;
  // The section.
  std::string shown_;
};

TEST_F(OwnDataWalk, PicturesOfClasses) {
  for (int i = 0; i < 40; ++i) {
    for (const auto& [name, channel] :
         {std::pair("cat", 0), std::pair("dog", 1), std::pair("\u732b", 2)}) {
      test::write_picture(
          format("{}/{}/{}.png", dir_ / "animals", name, i),
          channel,
          i);
    }
  }
  test::write_picture(dir_ / "photos/1.jpg", 1, 200);
  test::write_picture(dir_ / "more/x.jpg", 2, 201);
  const auto printed = walk("Classes", "\u5206\u7c7b");
  const std::vector<std::string> shown = lines_of_words(shown_);
  const std::vector<std::string> judged = lines_of_words(printed[1]);
  EXPECT_THAT(
      printed[1],
      HasSubstr("24 samples of folder animals (test part)"));
  for (const std::string heading :
       {"per_class f1 precision recall predicted actual auroc",
        "rows: targets, columns: predictions",
        "confusion cat dog \u732b"}) {
    EXPECT_THAT(judged, Contains(heading));
    EXPECT_THAT(shown, Contains(heading));
  }
  const auto rows = rows_of("names.csv");
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_THAT(shown, Contains(rows[0]));
  EXPECT_THAT(rows[1], HasSubstr("photos/1.jpg,dog,"));
  EXPECT_THAT(rows[2], HasSubstr("more/x.jpg,\u732b,"));
  for (const char* name :
       {"confusion.svg", "worst.png", "worst.csv", "metrics.json"}) {
    EXPECT_TRUE(has_file(format("report/{}", name))) << name;
  }
}

// A dark picture with a bright square at a place of its own; where it is.
struct Scene {
  Image image = {};
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t side = 0;

  [[nodiscard]] bool is_inside(std::int64_t y, std::int64_t x) const {
    return y >= top && y < top + side && x >= left && x < left + side;
  }
};

Scene scene(std::int64_t height, std::int64_t width, std::int64_t i) {
  Scene made{
      .image = {.shape = {.channels = 3, .height = height, .width = width}},
      .side = std::min(height, width) / 2};
  made.top = i * 7 % (height - made.side);
  made.left = i * 11 % (width - made.side);
  for (std::int64_t at = 0; at < height * width; ++at) {
    const bool is_bright = made.is_inside(at / width, at % width);
    const auto level = static_cast<std::uint8_t>(is_bright ? 220 : 30);
    made.image.pixels.insert(made.image.pixels.end(), 3, level);
  }
  return made;
}

TEST_F(OwnDataWalk, MasksOfPixels) {
  for (const char* folder : {"streets/images", "streets/masks", "photos"}) {
    std::filesystem::create_directories(dir_ / folder);
  }
  for (std::int64_t i = 0; i < 40; ++i) {
    const Scene made = scene(40, 40, i);
    Image mask{.shape = {.channels = 1, .height = 40, .width = 40}};
    for (std::int64_t at = 0; at < 1600; ++at) {
      mask.pixels.push_back(made.is_inside(at / 40, at % 40) ? 1 : 0);
    }
    write_png(format("{}/{}.png", dir_ / "streets/images", i), made.image);
    write_png(format("{}/{}.png", dir_ / "streets/masks", i), mask);
  }
  put("streets/classes.txt", "street\nsign\n");
  const Scene photo = scene(40, 70, 5);
  write_png(dir_ / "photos/1.jpg", photo.image);
  const auto printed = walk("Masks", "\u63a9\u7801");
  EXPECT_THAT(printed[1], HasSubstr("miou"));
  EXPECT_THAT(printed[1], HasSubstr("\nsign"));
  const auto rows = rows_of("masks.csv");
  EXPECT_THAT(rows, ElementsAre("path,mask", "photos/1.jpg,masks/1.png"));
  EXPECT_THAT(lines_of_words(shown_), Contains(rows[1]));
  const Image mask = read_image(dir_ / "masks/1.png", {.channels = 1});
  ASSERT_EQ(mask.shape.width, 70);
  ASSERT_EQ(mask.shape.height, 40);
  std::int64_t right = 0;
  for (std::int64_t at = 0; at < mask.shape.numel(); ++at) {
    const int expected = photo.is_inside(at / 70, at % 70) ? 1 : 0;
    right += mask.pixels[static_cast<std::size_t>(at)] == expected ? 1 : 0;
  }
  EXPECT_GE(right, mask.shape.numel() * 9 / 10);
  EXPECT_TRUE(has_file("report/worst.png"));
}

TEST_F(OwnDataWalk, ValuesOfPictures) {
  std::filesystem::create_directories(dir_ / "images");
  std::filesystem::create_directories(dir_ / "photos");
  std::string table = "path,x,y\n";
  const auto place = [](const Scene& made) {
    return std::pair(
        static_cast<double>(made.left) / 40,
        static_cast<double>(made.top) / 40);
  };
  for (std::int64_t i = 0; i < 80; ++i) {
    const Scene made = scene(40, 40, i);
    const auto [x, y] = place(made);
    table += format("images/{}.png,{:.3f},{:.3f}\n", i, x, y);
    write_png(format("{}/{}.png", dir_ / "images", i), made.image);
  }
  put("points.csv", table);
  const Scene photo = scene(40, 40, 33);
  write_png(dir_ / "photos/1.jpg", photo.image);
  const auto printed = walk("Values", "\u6570\u503c");
  EXPECT_THAT(printed[1], HasSubstr("mae"));
  EXPECT_THAT(printed[1], HasSubstr("\nper_output"));
  const auto rows = rows_of("points-of-photos.csv");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0], "path,x,y");
  const auto fields = split(rows[1], ',');
  ASSERT_THAT(fields, SizeIs(3));
  const auto [x, y] = place(photo);
  EXPECT_NEAR(std::stod(fields[1]), x, 0.2);
  EXPECT_NEAR(std::stod(fields[2]), y, 0.2);
}

} // namespace
} // namespace lockstep::cli_train
