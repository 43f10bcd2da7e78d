// SPDX-License-Identifier: BSD-3-Clause
//
// --augment: words, files and what a run keeps of them.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/augment_file.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kSteps =
    "- random-resized-crop: {scale: [0.3, 1]}\n"
    "- horizontal_flip   # torchvision's p\n"
    "- color_jitter:\n"
    "    brightness: 0.4\n"
    "    p: 0.8\n"
    "- invert:\n";
constexpr const char* kLine =
    "[random_resized_crop: {scale: [0.3, 1.0]}, horizontal_flip, "
    "color_jitter: {brightness: 0.4, p: 0.8}, invert]";

const Augment& steps() {
  static const Augment kAugment{
      {{.name = "random_resized_crop", .values = {{"scale", {0.3, 1}}}},
       {.name = "horizontal_flip"},
       {.name = "color_jitter",
        .probability = 0.8,
        .values = {{"brightness", {0.4}}}},
       {.name = "invert"}}};
  return kAugment;
}

std::string refused_steps(const std::string& text) {
  try {
    static_cast<void>(augment_from_yaml(text, "a.yaml"));
  } catch (const Exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AugmentFile, StepsAreReadAndWritten) {
  EXPECT_EQ(augment_from_yaml(kSteps, "a.yaml"), steps());
  EXPECT_EQ(to_yaml(steps()), kLine);
  EXPECT_EQ(augment_from_yaml(kLine, "a.yaml"), steps());
  for (const std::string& name : augment_names()) {
    const Augment named = named_augment(name);
    EXPECT_EQ(augment_from_yaml(to_yaml(named), name), named);
  }
}

TEST(AugmentFile, WrongOnesAreRefusedAtTheirPlace) {
  EXPECT_THAT(refused_steps("crop: 3\n"), HasSubstr("list of steps"));
  EXPECT_THAT(refused_steps("[]"), HasSubstr("list of steps"));
  EXPECT_THAT(refused_steps("- crop\n- [a]\n"), HasSubstr("a.yaml:2:3"));
  EXPECT_THAT(
      refused_steps("- {crop: , fit: }\n"),
      HasSubstr("name of one step"));
  EXPECT_THAT(
      refused_steps("- crop: 3\n"),
      HasSubstr("the numbers of crop by name"));
  EXPECT_THAT(
      refused_steps("- crop: {padding: much}\n"),
      AllOf(HasSubstr("a.yaml:1:"), HasSubstr("expected a number")));
  EXPECT_THAT(
      refused_steps("- crop: {padding: 1, padding: 2}\n"),
      HasSubstr("two numbers 'padding'"));
  EXPECT_THAT(
      refused_steps("- corp\n"),
      AllOf(HasSubstr("did you mean 'crop'?"), HasSubstr("(a.yaml)")));
  EXPECT_THAT(refused_steps("- {crop\n"), HasSubstr("a.yaml"));
}

TEST(AugmentFile, AWordIsItselfAndAFileItsSteps) {
  const test::ScratchDir dir;
  std::ofstream(dir / "steps.yaml") << kSteps;
  EXPECT_EQ(resolved_augment("none", real_fs()), "none");
  EXPECT_EQ(resolved_augment("strong", real_fs()), "strong");
  EXPECT_EQ(resolved_augment(dir / "steps.yaml", real_fs()), kLine);
  EXPECT_EQ(resolved_augment(kLine, real_fs()), kLine);
  EXPECT_EQ(augment_of(kLine), steps());
  EXPECT_EQ(augment_of("flip"), Augment());
  EXPECT_EQ(augment_of("crop-flip"), Augment());
  EXPECT_EQ(augment_of("light"), named_augment("light"));
  try {
    resolved_augment("standart", real_fs());
    FAIL() << "no such word";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_FLAG_VALUE");
    EXPECT_THAT(error.what(), HasSubstr("did you mean standard?"));
  }
  try {
    resolved_augment(dir / "other.yaml", real_fs());
    FAIL() << "no such file";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kNotFound);
  }
}

class AugmentedRuns : public TrainerFixture {
 protected:
  AugmentedRuns() {
    for (int i = 0; i < 40; ++i) {
      const std::string folder = dir_ / (i % 2 == 0 ? "data/a" : "data/b");
      fs::create_directories(folder);
      Image image{.shape = {.channels = 3, .height = 20, .width = 24}};
      for (std::int64_t p = 0; p < image.shape.numel(); ++p) {
        image.pixels.push_back(static_cast<std::uint8_t>(p * (i + 3)));
      }
      write_png(format("{}/{}.png", folder, i), image);
    }
  }

  TrainConfig of_folder(const std::string& output) {
    TrainConfig config = small(output);
    config.data = "folder";
    config.data_dir = dir_ / "data";
    config.img_size = 16;
    config.batch_size = 8;
    config.workers = 2;
    config.augment = write_steps(kSteps);
    return config;
  }

  std::string write_steps(const std::string& text) {
    std::string path = dir_ / "steps.yaml";
    std::ofstream(path) << text;
    return path;
  }

  // Stops after `steps` steps.
  void train_part(const TrainConfig& config, int steps) {
    int done = 0;
    EXPECT_TRUE(train(config, {.should_stop = [&] { return ++done >= steps; }})
                    .was_stopped);
  }
};

TEST_F(AugmentedRuns, AStopInTheMiddleOfAnEpochChangesNothing) {
  train(of_folder("straight"));
  for (const int stop : {1, 3, 6}) {
    TrainConfig config = of_folder(format("stopped-{}", stop));
    train_part(config, stop);
    // The run has the steps: their file may go.
    fs::remove(config.augment);
    config.augment = kLine;
    config.resume = config.output;
    config.resume_exact = true;
    train(config);
    for (const std::string name : {"checkpoint.pth.tar", "steps.csv"}) {
      EXPECT_TRUE(
          get("straight", name) == get(format("stopped-{}", stop), name))
          << name << " after " << stop;
    }
  }
}

TEST_F(AugmentedRuns, KeepTheStepsAndTellOfOthers) {
  TrainConfig config = of_folder("run");
  train_part(config, 1);
  EXPECT_THAT(
      get("run", "args.yaml"),
      HasSubstr(format("augment: \"{}\"", kLine)));
  config.resume = config.output;
  config.resume_exact = true;
  config.augment = write_steps("- horizontal_flip\n");
  try {
    train(config);
    FAIL() << "these are other steps";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("now '[horizontal_flip]'"));
  }
  config.resume_exact = false;
  RecordingLog log;
  train(config, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("--augment [horizontal_flip] (was [random_")));
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("augment: '[random_")));
}

TEST_F(AugmentedRuns, OfFashionMnistHaveTheirOwnStandard) {
  TrainConfig config = small("crop-flip");
  config.augment = "crop-flip";
  train(config);
  config = small("standard");
  config.augment = "standard";
  train(config);
  EXPECT_EQ(get("crop-flip", "steps.csv"), get("standard", "steps.csv"));
  config = small("light");
  config.augment = "light";
  train(config);
  EXPECT_NE(get("light", "steps.csv"), get("standard", "steps.csv"));
  for (const std::string word : {"none", "flip"}) {
    config = small(word);
    config.augment = word;
    train(config);
  }
  EXPECT_NE(get("flip", "steps.csv"), get("standard", "steps.csv"));
  EXPECT_NE(get("flip", "steps.csv"), get("none", "steps.csv"));
  // The same in steps, and with other numbers.
  for (const auto& [steps, word] :
       {std::pair{"[crop: {padding: 2}]", "light"},
        std::pair{"[crop, horizontal_flip]", "standard"},
        std::pair{"[crop: {padding: 1}, horizontal_flip]", ""}}) {
    config = small(format("steps of {}", word));
    config.augment = steps;
    train(config);
    const std::string losses = get(format("steps of {}", word), "steps.csv");
    for (const std::string other : {"light", "standard", "flip", "none"}) {
      EXPECT_EQ(losses == get(other, "steps.csv"), other == word) << steps;
    }
  }
  for (const std::string& augment :
       {std::string("strong"),
        std::string("[horizontal_flip, crop]"),
        std::string("[horizontal_flip: {p: 0.2}]"),
        write_steps(kSteps)}) {
    config.augment = augment;
    try {
      train(config);
      FAIL() << "FashionMNIST has no " << augment;
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().detail, "E_FLAG_VALUE");
      EXPECT_THAT(error.what(), HasSubstr("only image files"));
    }
  }
}

} // namespace
} // namespace lockstep::train
