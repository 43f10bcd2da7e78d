// SPDX-License-Identifier: BSD-3-Clause
//
// TensorBoard's own loader is the judge: tests/oracle/train_events.py.
#include "lockstep/train/observers/event_observer.h"

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/fault_fs.h"
#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class EventObserverTest : public TrainerFixture {
 protected:
  // The points of one tag: "step value".
  std::vector<std::string> points(
      const std::string& folder,
      const std::string& tag) {
    std::vector<std::string> found;
    for (const std::string& line :
         test::python_lines("train_events.py", {dir_ / folder})) {
      const auto cells = split(line, '\t');
      if (cells.at(0) == tag) {
        found.push_back(cells.at(1) + " " + cells.at(2));
      }
    }
    return found;
  }
  std::vector<std::string> event_files(const std::string& folder) {
    auto names = real_fs().list(dir_ / folder).value();
    std::erase_if(names, [](const std::string& name) {
      return !name.starts_with(report::kEventFilePrefix);
    });
    return names;
  }
  // The same numbers from a table of the run: its `columns` are step and value.
  std::vector<std::string> rows(
      const std::string& file,
      const std::string& folder,
      std::size_t value_column,
      std::size_t step_column) {
    std::vector<std::string> found;
    const auto lines = split(get(folder, file), '\n');
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
      const auto cells = split(lines[i], ',');
      found.push_back(
          cells.at(step_column) + " " +
          format("{:.6g}", std::stof(cells.at(value_column))));
    }
    return found;
  }
};

TEST_F(EventObserverTest, TensorBoardReadsTheNumbersOfTheTables) {
  train(small("run"));
  EXPECT_EQ(points("run", "Loss/batch"), rows("steps.csv", "run", 2, 0));
  EXPECT_EQ(points("run", "LearningRate"), rows("steps.csv", "run", 3, 0));
  EXPECT_EQ(points("run", "Loss/train"), rows("results.csv", "run", 3, 1));
  EXPECT_EQ(points("run", "Accuracy/train"), rows("results.csv", "run", 4, 1));
  EXPECT_EQ(points("run", "Loss/test"), rows("results.csv", "run", 5, 1));
  EXPECT_EQ(points("run", "Accuracy/test"), rows("results.csv", "run", 6, 1));
  EXPECT_THAT(points("run", "ImagesPerSecond"), SizeIs(2));
}

TEST_F(EventObserverTest, EveryPointIsThereOnceAfterAKill) {
  const TrainConfig config = small("run");
  // Two steps of the second epoch are in the file, and not in any checkpoint.
  struct Killed {};
  struct Killer : Observer {
    void on_step(const StepRecord& record) override {
      if (record.step == 6) {
        throw Killed();
      }
    }
  };
  EXPECT_THROW(
      train(config, {.observers = {std::make_shared<Killer>()}}),
      Killed);
  EXPECT_THAT(points("run", "Loss/batch"), SizeIs(6));

  // As a kill inside a write leaves it.
  const std::string path = dir_ / ("run/" + event_files("run").at(0));
  const auto size = real_fs().stat(path).value().size;
  real_fs().truncate(path, size - 5).value();
  EXPECT_THAT(points("run", "Loss/batch"), SizeIs(5));

  TrainConfig again = config;
  again.resume = "auto";
  train(again);
  EXPECT_THAT(event_files("run"), SizeIs(2));
  EXPECT_EQ(points("run", "Loss/batch"), rows("steps.csv", "run", 2, 0));
  EXPECT_EQ(points("run", "Loss/test"), rows("results.csv", "run", 5, 1));
}

TEST_F(EventObserverTest, AFullDiskIsToldOnce) {
  FaultFs full(real_fs(), {.error_number = 28, .byte_budget = 0});
  std::vector<std::string> warnings;
  RunFiles files(full, [&](const Error& error) {
    warnings.push_back(error.path);
  });
  real_fs().create_directories(dir_ / "run").value();
  EventObserver observer(full, files, dir_ / "run", 1);
  observer.on_start({});
  observer.on_step({.batches = 1});
  observer.on_epoch({});
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(report::kEventFilePrefix)));
}

} // namespace
} // namespace lockstep::train
