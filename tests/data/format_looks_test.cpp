// SPDX-License-Identifier: BSD-3-Clause
//
// Data that look like something else at first sight: nothing is guessed
// without a word.
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/data/augment.h"
#include "lockstep/data/internal/array_dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class FormatLooks : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    const stdfs::path path = dir_ / name;
    stdfs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // The first pixels have the numbers, the others 0.
  void put_png(
      const std::string& name,
      const std::vector<std::uint8_t>& numbers = {}) const {
    stdfs::create_directories(stdfs::path(dir_ / name).parent_path());
    const ImageShape shape{.channels = 1, .height = 8, .width = 8};
    std::vector<std::uint8_t> pixels = numbers;
    pixels.resize(static_cast<std::size_t>(shape.numel()));
    write_png(dir_ / name, {.shape = shape, .pixels = std::move(pixels)});
  }
  Error csv_error(const std::string& text) const {
    put("t.csv", text);
    return test::error_of([&] { open_dataset("csv", dir_ / "t.csv"); });
  }

  const test::ScratchDir dir_;
};

TEST_F(FormatLooks, ASlipInAColumnOfNumbersMakesNoClasses) {
  const Error slip = csv_error("x,price\n1,2.5\n2,3.5\n3,n/a\n4,1.5\n");
  EXPECT_EQ(slip.detail, "E_CSV");
  EXPECT_THAT(
      slip.message,
      HasSubstr("'price' is 'n/a', and 3 of 4 rows have numbers there"));
  EXPECT_THAT(slip.message, HasSubstr("line 4"));
  EXPECT_THAT(slip.hint, HasSubstr("--task classification"));
  EXPECT_THAT(
      csv_error("x;price\n1;2,5\n2;3,5\n3;4,25\n").message,
      HasSubstr("'2,5'"));
  EXPECT_THAT(
      csv_error("x,size\n1,7\n2,8\n3,9\n4,XL\n").message,
      HasSubstr("'XL'"));
}

TEST_F(FormatLooks, GapsInAColumnOfNumbersMakeNoClasses) {
  for (const char* gap : {"-", "n/a", "NaN", "?", "NULL"}) {
    const std::string mark = gap;
    const Error error = csv_error(
        "x,price\n1,2.5\n2," + mark + "\n3," + mark + "\n4," + mark + "\n");
    EXPECT_EQ(error.detail, "E_CSV") << gap;
  }
  put("t.csv", "x,y\n1,-\n2,-\n3,yes\n4,yes\n");
  EXPECT_EQ(open_dataset("csv", dir_ / "t.csv").train->num_classes(), 2);
}

TEST_F(FormatLooks, IdsAreNoClasses) {
  std::string numbers = "x,y\n";
  std::string texts = "x,y\n";
  for (int i = 0; i < 60; ++i) {
    numbers += format("{},{}\n", i % 7, 100 + i);
    texts += format("{},person{}\n", i % 7, i);
  }
  const Error error = csv_error(numbers);
  EXPECT_EQ(error.detail, "E_CSV");
  EXPECT_THAT(
      error.message,
      HasSubstr("'y' has 60 different whole numbers in 60 rows"));
  EXPECT_THAT(error.hint, HasSubstr("--task regression"));
  EXPECT_THAT(csv_error(texts).message, HasSubstr("60 different texts"));
  std::string ages = "x,age\n";
  for (int i = 0; i < 160; ++i) {
    ages += format("{},{}\n", i % 7, 20 + i % 60);
  }
  EXPECT_THAT(csv_error(ages).hint, HasSubstr("--task regression"));
  put("t.csv", numbers);
  EXPECT_EQ(
      open_dataset("csv", dir_ / "t.csv", {.targets = TargetKind::kValues})
          .train->target_format()
          .kind,
      TargetKind::kValues);
  EXPECT_EQ(
      open_dataset("csv", dir_ / "t.csv", {.targets = TargetKind::kClasses})
          .train->num_classes(),
      159); // counted from 1
}

TEST_F(FormatLooks, PathsInAColumnOfAnotherNameAreTold) {
  EXPECT_THAT(
      csv_error("photo,y\na/1.png,0.5\na/2.png,0.25\n").hint,
      HasSubstr("is called path, image"));
}

TEST_F(FormatLooks, LinesMayEndAsOnOldMacs) {
  put("t.csv", "x,y\r1,a\r2,b\r3,a\r4,b\r");
  const DatasetParts data = open_dataset("csv", dir_ / "t.csv");
  EXPECT_EQ(data.train->num_classes(), 2);
  EXPECT_EQ(data.train->size() + data.test->size(), 4);
}

TEST_F(FormatLooks, ClassesInAFolderMoreAreNoClass) {
  for (const char* name : {"a/cat/1.png", "a/cat/2.png", "a/dog/1.png"}) {
    put_png(name);
  }
  const Error error =
      test::error_of([&] { open_dataset("folder", dir_.path()); });
  EXPECT_EQ(error.detail, "E_NO_DATA");
  EXPECT_THAT(error.message, HasSubstr("one class, 'a'"));
  EXPECT_THAT(error.hint, HasSubstr(dir_ / "a"));
  put_png("a/3.png"); // beside folders: a class with folders in it
  put_png("a/4.png");
  EXPECT_EQ(open_dataset("folder", dir_.path()).train->num_classes(), 1);
}

TEST_F(FormatLooks, NamesWithSomeNumbersAmongThemAreClasses) {
  put("t.csv", "x,y\n1,4x4\n2,van\n3,911\n4,van\n5,4x4\n6,911\n");
  EXPECT_EQ(open_dataset("csv", dir_ / "t.csv").train->num_classes(), 3);
  put("t.csv", "x,y\n1,2.5\n2,3.5\n3,n/a\n4,1.5\n");
  const DatasetParts said =
      open_dataset("csv", dir_ / "t.csv", {.targets = TargetKind::kClasses});
  EXPECT_THAT(
      said.train->class_names(),
      ElementsAre("1.5", "2.5", "3.5", "n/a"));
}

TEST_F(FormatLooks, GreyLevelsAreNoClasses) {
  for (const std::string name : {"1", "2", "3"}) {
    put_png("images/" + name + ".png");
    put_png("masks/" + name + ".png", {0, 127, 254});
  }
  const auto open = [&] {
    return open_dataset("segmentation", dir_.path(), {.image_size = 8});
  };
  const Error error = test::error_of(open);
  EXPECT_EQ(error.detail, "E_LABEL");
  EXPECT_THAT(error.message, HasSubstr("3 different numbers up to 254"));
  EXPECT_THAT(error.message, HasSubstr("'0', '127', '254'"));
  std::string names;
  for (int i = 0; i < 255; ++i) {
    names += std::to_string(i) + "\n";
  }
  put("classes.txt", names);
  EXPECT_EQ(open().train->num_classes(), 255);
  put("classes.txt", names + "255\n");
  EXPECT_THAT(
      test::error_of(open).message,
      HasSubstr("has 256 names; expected 255 or fewer"));
}

TEST_F(FormatLooks, EdgesThatWereResizedAreNoClasses) {
  for (const std::string name : {"1", "2", "3"}) {
    put_png("images/" + name + ".png");
    put_png("masks/" + name + ".png", {0, 31, 90, 140, 224, 255});
  }
  const auto open = [&] {
    return open_dataset("segmentation", dir_.path(), {.image_size = 8});
  };
  EXPECT_EQ(test::error_of(open).detail, "E_LABEL");
  std::vector<std::uint8_t> all(64);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint8_t>(4 * i + 3);
  }
  put_png("masks/1.png", all);
  EXPECT_EQ(test::error_of(open).detail, "E_LABEL") << "a gradient";
  for (const std::string name : {"1", "2", "3"}) {
    put_png("masks/" + name + ".png", {0, 1, 19, 33, 255});
  }
  EXPECT_EQ(open().train->num_classes(), 34) << "of which few are here";
}

TEST_F(FormatLooks, FilesThatMayNotBeReadAreLeftOut) {
  put_png("train/cat/1.png");
  put_png("train/dog/1.png");
  put_png("val/cat/1.png");
  put_png("val/dog/1.png");
  stdfs::create_symlink(dir_ / "gone", dir_ / "train/cat/2.png");
  stdfs::create_directories(dir_ / "train/dog/2.png");
  const auto open = [&](bool skips) {
    return open_dataset(
        "folder",
        dir_.path(),
        {.image_size = 8, .skip_bad_images = skips});
  };
  const DatasetParts parts = open(true);
  EXPECT_EQ(parts.train->size(), 2);
  EXPECT_EQ(parts.bad_files.size(), 2U);
  EXPECT_EQ(open(false).train->size(), 4);
}

TEST_F(FormatLooks, AClassWithoutImagesLeftIsTold) {
  for (const std::string part : {"train/", "val/"}) {
    put_png(part + "cat/1.png");
    put_png(part + "dog/1.png");
  }
  put("train/dog/1.png", "no picture");
  const DatasetParts parts = open_dataset(
      "folder",
      dir_.path(),
      {.image_size = 8, .skip_bad_images = true});
  EXPECT_THAT(
      parts.notes,
      ElementsAre(
          HasSubstr("no image for training is left of a class: 'dog'")));
}

TEST_F(FormatLooks, AFolderThatIsSplitSaysSo) {
  for (const std::string name : {"1", "2", "3", "4", "5"}) {
    put_png("cat/" + name + ".png");
    put_png("dog/" + name + ".png");
  }
  EXPECT_THAT(
      open_dataset("folder", dir_.path()).notes,
      ElementsAre(HasSubstr("2 of 10 images are taken for it")));
}

TEST_F(FormatLooks, PartsWhoseClassesHavePartsAreParts) {
  for (const std::string part : {"train/", "val/"}) {
    put_png(part + "cat/black/1.png");
    put_png(part + "dog/small/old/1.png");
  }
  const DatasetParts parts = open_dataset("folder", dir_.path());
  EXPECT_THAT(parts.train->class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(parts.test->size(), 2);
}

TEST_F(FormatLooks, OfSeveralIdxTestsTheFirstInOrderIsRead) {
  const auto put_part = [&](const std::string& name, char pixel) {
    put(name + "-images-idx3-ubyte",
        test::idx({2, 2, 2}, std::string(8, pixel)));
    put(name + "-labels-idx1-ubyte", test::idx({2}, std::string("\0\1", 2)));
  };
  put_part("train", '\1');
  put_part("t10k", '\2');
  put_part("test", '\3');
  put_part("val", '\4');
  const DatasetParts parts = open_dataset("idx", dir_.path());
  std::vector<float> image(4);
  std::vector<std::int64_t> target(1);
  parts.test->read(std::vector<std::int64_t>{0}, 0, image, target);
  EXPECT_FLOAT_EQ(image[0], 4.0F / 255.0F);
  EXPECT_THAT(parts.notes, Contains(HasSubstr("one is read: val-images")));
}

TEST_F(FormatLooks, AnyTrainBinIsNotCifar) {
  put_png("cat/1.png");
  put_png("dog/1.png");
  put("train.bin", "weights of something");
  EXPECT_EQ(dataset_in(dir_.path()), "folder");
  put("train.bin", std::string(3074, '\1'));
  EXPECT_EQ(dataset_in(dir_.path()), "cifar100");
}

TEST_F(FormatLooks, NumbersThatAreNotFiniteNameTheirSample) {
  const auto read = [](const std::shared_ptr<Dataset>& data) {
    return test::error_of([&] {
      for (const Batch& batch :
           Loader(std::shared_ptr<const Dataset>(data), {.batch_size = 2})) {
        (void)batch;
      }
    });
  };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  at::Tensor x = torch::zeros({5, 3});
  at::Tensor y = torch::zeros({5, 2});
  const auto arrays = [&](const at::Tensor& inputs, const at::Tensor& values) {
    return std::make_shared<internal::ArrayDataset>(
        internal::ArraySamples{
            .inputs = internal::elements_of(inputs),
            .target = {.kind = TargetKind::kValues, .shape = {2}},
            .targets = internal::elements_of(values),
            .file = "t.npz"},
        TransformOptions{});
  };
  at::Tensor bad_x = x.clone();
  bad_x[3][1] = nan;
  at::Tensor bad_y = y.clone();
  bad_y[4][0] = std::numeric_limits<float>::infinity();
  const Error input = read(arrays(bad_x, y));
  EXPECT_EQ(input.detail, "E_NOT_FINITE");
  EXPECT_THAT(input.message, HasSubstr("the input of sample 3 is not finite"));
  EXPECT_THAT(input.message, HasSubstr("number 1 of 3 is nan"));
  EXPECT_EQ(input.path, "t.npz, sample 3");
  const Error target = read(arrays(x, bad_y));
  EXPECT_EQ(target.detail, "E_NOT_FINITE");
  EXPECT_THAT(target.message, HasSubstr("the target of sample 4"));
}

TEST_F(FormatLooks, APathWithoutDataIsNamed) {
  const Error gone = test::error_of([&] { dataset_at(dir_ / "gone"); });
  EXPECT_EQ(gone.detail, "E_NO_DATA");
  EXPECT_THAT(gone.message, HasSubstr("no data set is called so"));
  put("notes.txt", "nothing");
  const Error error = test::error_of([&] { dataset_at(dir_.path()); });
  EXPECT_EQ(error.detail, "E_NO_DATA");
  EXPECT_EQ(error.path, dir_.path());
  EXPECT_THAT(error.hint, Not(HasSubstr("DIR")));
}

} // namespace
} // namespace lockstep
