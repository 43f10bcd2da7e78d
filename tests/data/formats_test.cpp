// SPDX-License-Identifier: BSD-3-Clause
//
// Every kind of data, made by Python (data_formats.py): recognised by its looks
// and read in Python's bits, by one thread and by several.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Kind {
  /// Of data_formats.py.
  std::string made = {};
  /// What `dataset_in` says.
  std::string name = {};
  /// Of the file that is written; empty for a folder.
  std::string ending = {};
  std::vector<std::int64_t> shape = {};
  std::int64_t classes = 0;
  TargetFormat target = {.kind = TargetKind::kClasses};
};

const std::vector<Kind>& kinds() {
  static const std::vector<std::int64_t> cifar{3, 32, 32};
  static const TargetFormat mask{
      .kind = TargetKind::kClasses,
      .shape = {32, 32}};
  static const TargetFormat two{.kind = TargetKind::kValues, .shape = {2}};
  static const std::vector<Kind> all{
      {"cifar10-binary", "cifar10", "", cifar, 10},
      {"cifar10-pickles", "cifar10", "", cifar, 10},
      {"cifar100-binary", "cifar100", "", cifar, 100},
      {"cifar100-pickles", "cifar100", "", cifar, 100},
      {"idx", "idx", "", {1, 9, 6}, 5},
      {"idx-letters", "idx", "", {1, 5, 5}, 5},
      {"idx-colours", "idx", "", {3, 8, 6}, 5},
      {"npz", "arrays", ".npz", {3, 9, 7}, 3},
      {"safetensors", "arrays", ".safetensors", {3, 9, 7}, 3},
      {"pt", "arrays", ".pt", {3, 9, 7}, 3},
      {"values", "arrays", "", {4}, 0, two},
      {"masks",
       "arrays",
       "",
       {3, 6, 5},
       4,
       {.kind = TargetKind::kClasses, .shape = {6, 5}}},
      {"palette", "segmentation", "", cifar, 5, mask},
      {"grey", "segmentation", "", cifar, 5, mask},
      {"wide", "segmentation", "", cifar, 5, mask},
      {"csv-numbers", "csv", "", {3}, 3},
      {"csv-images", "csv", "", cifar, 0, two}};
  return all;
}

class Formats : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    test::run_python("data_formats.py", {GetParam().made, dir_.path()});
    path_ = dir_ / "data" + GetParam().ending;
  }
  [[nodiscard]] std::string bytes(const std::string& name) const {
    return read_text(real_fs(), dir_ / name).value();
  }

  const test::ScratchDir dir_;
  std::string path_;
};

TEST_P(Formats, AreRecognisedAndHavePythonsBits) {
  const Kind& kind = GetParam();
  EXPECT_EQ(dataset_in(path_), kind.name);
  const DatasetParts data = open_dataset(kind.name, path_, {.image_size = 32});
  EXPECT_EQ(data.train->sample_shape(), kind.shape);
  EXPECT_EQ(data.train->num_classes(), kind.classes);
  EXPECT_EQ(data.train->target_format(), kind.target);
  EXPECT_EQ(data.test->target_format(), kind.target);
  EXPECT_GT(data.test->size(), 0);
  for (const std::int64_t workers : {0, 2}) {
    Loader loader(
        data.train,
        {.batch_size = data.train->size(), .workers = workers});
    const Batch batch = *loader.begin();
    const auto same = [&](const at::Tensor& tensor, const std::string& python) {
      ASSERT_EQ(tensor.nbytes(), python.size());
      EXPECT_EQ(
          std::memcmp(tensor.const_data_ptr(), python.data(), python.size()),
          0);
    };
    same(batch.images, bytes("x.bin"));
    same(batch.targets, bytes("y.bin"));
  }
}

TEST_P(Formats, GiveTargetsWithoutTheSamples) {
  const DatasetParts data =
      open_dataset(GetParam().name, path_, {.image_size = 32});
  const auto count = static_cast<std::size_t>(data.train->size());
  const auto numel =
      static_cast<std::size_t>(data.train->target_format().numel());
  const std::string python = bytes("y.bin");
  std::vector<std::int64_t> indices(count);
  std::vector<std::int64_t> classes(count * numel);
  std::vector<float> values(count * numel);
  TargetRows rows;
  rows.classes = classes;
  rows.values = values;
  for (std::size_t i = 0; i < count; ++i) {
    indices[i] = static_cast<std::int64_t>(i);
  }
  data.train->read_targets(indices, rows);
  const void* read = data.train->num_classes() > 0
                         ? static_cast<const void*>(classes.data())
                         : values.data();
  EXPECT_EQ(std::memcmp(read, python.data(), python.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Formats,
    testing::ValuesIn(kinds()),
    [](const auto& kind) {
      std::string name = kind.param.made;
      std::erase(name, '-');
      return name;
    });

class MadeFormats : public testing::Test {
 protected:
  std::string make(const std::string& kind) {
    test::run_python("data_formats.py", {kind, dir_.path()});
    return dir_ / "data";
  }
  const test::ScratchDir dir_;
};

TEST_F(MadeFormats, HaveTheNamesOfTheirFiles) {
  const DatasetParts data = open_dataset("cifar10", make("cifar10-pickles"));
  EXPECT_EQ(data.train->class_names()[3], "class 3 \u732b");
  EXPECT_THAT(data.train->sample_name(2), HasSubstr("data_batch_1, sample 2"));
}

TEST_F(MadeFormats, SayThatLabelsBeginWithOne) {
  const DatasetParts data = open_dataset("idx", make("idx-letters"));
  EXPECT_THAT(data.train->class_names(), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_THAT(data.notes, ElementsAre(HasSubstr("class 0 is label 1")));
}

TEST_F(MadeFormats, HaveClassesAndValuesWithNames) {
  const DatasetParts table = open_dataset("csv", make("csv-numbers"));
  EXPECT_THAT(
      table.train->class_names(),
      ElementsAre("a", "b", "\u732b, \"x\""));
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("'kind' has texts: 3")));
}

TEST_F(MadeFormats, OfTablesPredictOtherColumns) {
  const std::string path = make("csv-numbers");
  const auto error = [&] {
    try {
      open_dataset("csv", path, {.target = "thre"});
    } catch (const Exception& exception) {
      return exception.error();
    }
    return Error{};
  }();
  EXPECT_EQ(error.hint, "did you mean three?");
}

TEST_F(MadeFormats, OfImagesAreAugmentedInStep) {
  const std::string path = make("palette");
  const TransformOptions flips{
      .crop_padding = 3,
      .horizontal_flip = true,
      .seed = 5,
      .mean = {0, 0, 0},
      .std = {1, 1, 1}};
  const DatasetParts data = open_dataset(
      "segmentation",
      path,
      {.transform = flips, .image_size = 32});
  const DatasetParts plain = open_dataset(
      "segmentation",
      path,
      {.transform = {.mean = {0, 0, 0}, .std = {1, 1, 1}}, .image_size = 32});
  constexpr std::size_t kPlane = 32 * 32;
  std::vector<float> image(3 * kPlane);
  std::vector<float> plain_image(3 * kPlane);
  std::vector<std::int64_t> mask(kPlane);
  std::vector<std::int64_t> plain_mask(kPlane);
  for (std::int64_t i = 0; i < data.train->size(); ++i) {
    const std::span<const std::int64_t> one(&i, 1);
    data.train->read(one, /*epoch=*/7, image, mask);
    plain.train->read(one, /*epoch=*/7, plain_image, plain_mask);
    const Augmentation choice = augmentation(flips, 7, i);
    for (std::int64_t y = 0; y < 32; ++y) {
      for (std::int64_t x = 0; x < 32; ++x) {
        const std::int64_t from_y = y + choice.top - 3;
        const std::int64_t from_x =
            (choice.flip ? 31 - x : x) + choice.left - 3;
        const bool is_inside =
            from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        const auto at = static_cast<std::size_t>(y * 32 + x);
        const auto from = static_cast<std::size_t>(from_y * 32 + from_x);
        ASSERT_EQ(image[at], is_inside ? plain_image[from] : 0.0F);
        ASSERT_EQ(mask[at], is_inside ? plain_mask[from] : 255);
      }
    }
  }
}

} // namespace
} // namespace lockstep
