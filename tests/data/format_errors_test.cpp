// SPDX-License-Identifier: BSD-3-Clause
//
// Data that are damaged, wrong or odd: what is said of them, and about what.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FormatErrors : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    const stdfs::path path = dir_ / name;
    stdfs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  /// A grey picture of one number.
  void put_grey(
      const std::string& name,
      std::uint8_t number,
      std::int64_t width = 8,
      std::int64_t height = 8) const {
    stdfs::create_directories(stdfs::path(dir_ / name).parent_path());
    const ImageShape shape{.channels = 1, .height = height, .width = width};
    write_png(
        dir_ / name,
        {.shape = shape,
         .pixels = std::vector<std::uint8_t>(
             static_cast<std::size_t>(shape.numel()),
             number)});
  }
  Error error_of(
      const std::string& kind,
      const DatasetOptions& options = {.image_size = 8}) const {
    const auto error =
        test::error_if_any([&] { open_dataset(kind, dir_.path(), options); });
    EXPECT_TRUE(error);
    return error.value_or(Error{});
  }
  /// Of reading all of the training part.
  static Error reading_error(const DatasetParts& data) {
    auto error = error_of_part(*data.train);
    error = error ? error : error_of_part(*data.test);
    EXPECT_TRUE(error);
    return error.value_or(Error{});
  }
  static std::optional<Error> error_of_part(const Dataset& train) {
    return test::error_if_any([&] {
      std::int64_t numel = 1;
      for (const std::int64_t size : train.sample_shape()) {
        numel *= size;
      }
      std::vector<float> image(static_cast<std::size_t>(numel));
      std::vector<std::int64_t> target(
          static_cast<std::size_t>(train.target_format().numel()));
      for (std::int64_t i = 0; i < train.size(); ++i) {
        train.read(std::span(&i, 1), 0, image, target);
      }
    });
  }
  void put_pairs(int count) const {
    for (int i = 0; i < count; ++i) {
      const std::string name = "/" + std::to_string(i) + ".png";
      put_grey("images" + name, 100);
      put_grey("masks" + name, static_cast<std::uint8_t>(i % 2));
    }
  }

  const test::ScratchDir dir_;
};

TEST_F(FormatErrors, NothingIsRecognisedInAnEmptyFolder) {
  EXPECT_EQ(dataset_in(dir_.path()), "");
  EXPECT_EQ(dataset_in(dir_ / "gone"), "");
  EXPECT_EQ(dataset_in(""), "");
  for (const std::string& kind : dataset_names()) {
    EXPECT_EQ(error_of(kind).detail, "E_NO_DATA") << kind;
    const auto error =
        test::error_if_any([&] { open_dataset(kind, dir_ / "gone"); });
    ASSERT_TRUE(error) << kind;
    EXPECT_EQ(error->code, ErrorCode::kNotFound) << kind;
  }
}

TEST_F(FormatErrors, MissingAndSurplusMasksAreNamed) {
  put_pairs(4);
  stdfs::remove(dir_ / "masks/1.png");
  put_grey("masks/\u732b.png", 0);
  EXPECT_EQ(dataset_in(dir_.path()), "segmentation");
  const Error error = error_of("segmentation");
  EXPECT_EQ(error.detail, "E_MASK_PAIR");
  EXPECT_EQ(
      error.message,
      "1 image without mask: '1.png'; 1 mask without image: '\u732b.png'");
}

TEST_F(FormatErrors, MasksOfOtherFormatsAreTold) {
  put_pairs(4);
  put("images/4.bmp", "BM");
  put("masks/4.bmp", "BM");
  const test::Warnings warnings;
  open_dataset("segmentation", dir_.path(), {.image_size = 8});
  EXPECT_THAT(warnings.text, HasSubstr("2 images of other formats"));
}

TEST_F(FormatErrors, AMaskOfAnotherSizeIsNamed) {
  put_pairs(4);
  put_grey("masks/2.png", 1, 9, 8);
  put("classes.txt", "a\nb\nc\n");
  const Error error = reading_error(open_dataset(
      "segmentation",
      dir_.path(),
      {.image_size = 8, .split = {.val_share = 0.1}}));
  EXPECT_EQ(error.detail, "E_MASK_SIZE");
  EXPECT_EQ(error.path, dir_ / "masks/2.png");
  EXPECT_THAT(error.message, HasSubstr("9 x 8 pixels, its image"));
}

TEST_F(FormatErrors, ANumberBeyondTheNamesIsNoClass) {
  put_pairs(6);
  for (const char* name : {"masks/0.png", "masks/1.png", "masks/2.png"}) {
    put_grey(name, 7);
  }
  put("classes.txt", "a\r\nb\r\nc\r\n");
  const DatasetParts data =
      open_dataset("segmentation", dir_.path(), {.image_size = 8});
  EXPECT_THAT(data.train->class_names(), ElementsAre("a", "b", "c"));
  const Error error = reading_error(data);
  EXPECT_EQ(error.detail, "E_LABEL");
  EXPECT_THAT(error.path, HasSubstr("masks/"));
  EXPECT_THAT(error.message, HasSubstr("images/"));
  EXPECT_THAT(error.message, HasSubstr("has the number 7, which is no class"));
  put("classes.txt", "a\nb\n");
  EXPECT_THAT(error_of("segmentation").message, HasSubstr("names for 2"));
}

TEST_F(FormatErrors, WhiteOnBlackIsAClass) {
  put_pairs(4);
  for (const char* name : {"masks/1.png", "masks/3.png"}) {
    put_grey(name, 255);
  }
  const DatasetParts data =
      open_dataset("segmentation", dir_.path(), {.image_size = 8});
  EXPECT_EQ(data.train->num_classes(), 2);
  EXPECT_THAT(data.notes[0], HasSubstr("255 is read as class 1"));
}

TEST_F(FormatErrors, DamagedImagesAndMasksAreLeftOutByName) {
  put_pairs(12);
  put("images/3.png", "no image");
  put("masks/5.png", "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(error_of("segmentation").path, dir_ / "masks/5.png");
  const DatasetParts data = open_dataset(
      "segmentation",
      dir_.path(),
      {.image_size = 8, .skip_bad_images = true});
  std::vector<std::string> paths;
  for (const Error& error : data.bad_files) {
    paths.push_back(error.path);
  }
  EXPECT_THAT(
      paths,
      testing::UnorderedElementsAre(
          dir_ / "images/3.png",
          dir_ / "masks/5.png"));
  EXPECT_EQ(data.train->size() + data.test->size(), 10);
}

TEST_F(FormatErrors, AFileThatIsGoneIsNamed) {
  put_pairs(4);
  const DatasetParts data =
      open_dataset("segmentation", dir_.path(), {.image_size = 8});
  stdfs::remove_all(dir_ / "images");
  EXPECT_EQ(reading_error(data).code, ErrorCode::kNotFound);
}

TEST_F(FormatErrors, TablesSayTheLine) {
  struct Row {
    std::string text;
    std::string message;
  };
  const std::vector<Row> rows{
      {"", "the table is empty"},
      {"a,b\n", "no rows"},
      {"a\n1\n", "one column"},
      {"1,2\n3,4\n", "numbers only"},
      {"a,a\n1,2\n", "two columns are called 'a'"},
      {"a,b\n1,2\n\n1,2,3\n", "line 4: expected 2 cells"},
      {"a,b\n1,2\n1,\n", "line 3: there is no 'b'"},
      {"a,b\n1,2\n,2\n", "line 3: there is no 'a'"},
      {"a,b\nx,2\n1,2\n", "line 2: 'a' is 'x', which is no number"},
      {"a,b\nnan,2\n1,2\n", "'nan'"},
      {"a,b\n\"1,2\n", "a quote is not closed"},
      {"a,b\n\"1\"2,2\n", "text follows a cell in quotes"},
      {"a,b\n1,\xff\n", "line 2: the file is no UTF-8 text"},
  };
  for (const Row& row : rows) {
    put("t.csv", row.text);
    const Error error = error_of("csv");
    EXPECT_EQ(error.detail, "E_CSV") << row.text;
    EXPECT_EQ(error.path, dir_ / "t.csv");
    EXPECT_THAT(error.message, HasSubstr(row.message));
  }
}

TEST_F(FormatErrors, TablesHaveClassesOrValues) {
  const std::string whole = "x,y\n1,0\n2,1\n3,2\n4,0\n5,1\n6,2\n";
  put("t.csv", whole);
  const auto open = [&](const DatasetOptions& options) {
    return open_dataset("csv", dir_ / "t.csv", options);
  };
  EXPECT_EQ(open({}).train->num_classes(), 3);
  const DatasetParts values = open({.targets = TargetKind::kValues});
  EXPECT_EQ(values.train->num_classes(), 0);
  EXPECT_THAT(values.train->class_names(), ElementsAre("y"));
  EXPECT_EQ(open({.target = "x"}).train->num_classes(), 6);
  put("t.csv", "x,y\n1,0.5\n2,1\n3,2\n");
  EXPECT_EQ(open({}).train->num_classes(), 0);
  EXPECT_EQ(open({.targets = TargetKind::kClasses}).train->num_classes(), 3);
  put("t.csv", "x,y\n1,0\n2,-1\n3,2\n");
  EXPECT_EQ(error_of("csv").detail, "E_LABEL");
  put("t.csv", "x,y\n1,0\n2,123456\n3,2\n");
  EXPECT_THAT(error_of("csv").message, HasSubstr("these are no classes"));
}

TEST_F(FormatErrors, AGapInTheLabelsIsTold) {
  put("t.csv", "x,y\n1,0\n2,3\n3,0\n4,3\n");
  const DatasetParts data = open_dataset("csv", dir_ / "t.csv");
  EXPECT_EQ(data.train->num_classes(), 4);
  EXPECT_THAT(data.notes[1], HasSubstr("2 of 4 classes have no samples"));
}

TEST_F(FormatErrors, ATableOfPicturesGoesBeforeTheirFolders) {
  put_grey("train/cat/1.png", 3);
  put_grey("train/dog/1.png", 3);
  EXPECT_EQ(dataset_in(dir_.path()), "folder");
  put("notes.csv", "name,colour\nmimi,black\n");
  EXPECT_EQ(dataset_in(dir_.path()), "folder");
  stdfs::remove(dir_ / "notes.csv");
  put("labels.csv", "Image,label\ntrain/cat/1.png,1\ntrain/dog/1.png,0\n");
  EXPECT_EQ(dataset_in(dir_.path()), "csv");
}

TEST_F(FormatErrors, IdxFilesThatDoNotFitAreTold) {
  put("train-images-idx3-ubyte", test::idx({2, 2, 2}, std::string(8, '\1')));
  EXPECT_EQ(dataset_in(dir_.path()), "idx");
  EXPECT_THAT(error_of("idx").message, HasSubstr("labels are missing"));
  put("train-labels-idx1-ubyte", test::idx({3}, std::string(3, '\0')));
  EXPECT_THAT(error_of("idx").message, HasSubstr("expected 2 labels"));
  put("train-labels-idx1-ubyte", test::idx({2}, std::string("\0\1", 2)));
  put("t10k-images-idx3-ubyte", test::idx({1, 2, 3}, std::string(6, '\1')));
  put("t10k-labels-idx1-ubyte", test::idx({1}, std::string(1, '\0')));
  EXPECT_EQ(error_of("idx").detail, "E_DATA_SHAPE");
  put("own-train-labels-idx1-ubyte", "");
  EXPECT_THAT(error_of("idx").message, HasSubstr("several sets: '', 'own-'"));
}

TEST_F(FormatErrors, CifarThatIsCutIsTold) {
  const std::string record(3073, '\1');
  for (int i = 1; i < 6; ++i) {
    put("data_batch_" + std::to_string(i) + ".bin", record + record);
  }
  put("test_batch.bin", record.substr(1));
  EXPECT_EQ(dataset_in(dir_.path()), "cifar10");
  EXPECT_THAT(error_of("cifar10").message, HasSubstr("records of 3073 bytes"));
  put("test_batch.bin", std::string(3073, '\12'));
  const Error error = error_of("cifar10");
  EXPECT_EQ(error.detail, "E_LABEL");
  EXPECT_EQ(error.path, dir_ / "test_batch.bin");
  EXPECT_THAT(
      error.message,
      HasSubstr("sample 0 is no class; expected 0 to 9"));
}

TEST_F(FormatErrors, CifarsPicklesAreNotRun) {
  for (const std::string bytes :
       {"cos\nsystem\n(S'touch gone'\ntR.", "\x80\x02}.", "\x80\x02", "junk"}) {
    for (const char* name : {"train", "test", "meta"}) {
      put(name, bytes);
    }
    const Error error = error_of("cifar100");
    EXPECT_EQ(error.path, dir_ / "train");
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(stdfs::exists("gone"));
}

TEST_F(FormatErrors, ArraysSayWhatIsThere) {
  test::run_python("data_odd_arrays.py", {dir_.path()});
  const auto error_in = [&](const std::string& name) {
    const auto error =
        test::error_if_any([&] { open_dataset("arrays", dir_ / name); });
    EXPECT_TRUE(error) << name;
    return error.value_or(Error{});
  };
  EXPECT_THAT(error_in("names.npz").message, HasSubstr("but 'a', 'b'"));
  EXPECT_THAT(
      error_in("counts.npz").message,
      HasSubstr("3 samples and 2 targets"));
  EXPECT_EQ(error_in("complex.npz").detail, "E_DATA_TYPE");
  EXPECT_EQ(error_in("negative.npz").detail, "E_LABEL");
  const Error bomb = error_in("bomb.npz");
  EXPECT_EQ(bomb.code, ErrorCode::kUnsafe);
  EXPECT_EQ(bomb.path, dir_ / "bomb.npz");
  EXPECT_EQ(error_in("cut.npz").code, ErrorCode::kCorrupt);
  EXPECT_THAT(
      error_in("objects.npz").message,
      HasSubstr("'x' is no array of numbers"));
}

} // namespace
} // namespace lockstep
