// SPDX-License-Identifier: BSD-3-Clause
#include <regex>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/csv_observer.h"
#include "lockstep/train/observers/json_observer.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/observers/run_log.h"
#include "lockstep/train/records/record_row.h"
#include "lockstep/train/task.h"
#include "tests/support/memory_fs.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Lines : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view message) override {
    lines.emplace_back(message);
  }
  std::vector<std::string> lines = {};
};

StepRecord step(std::int64_t epoch, std::int64_t batch) {
  return {
      .epoch = epoch,
      .step = (epoch - 1) * 100 + batch + 1,
      .batch = batch,
      .batches = 100,
      .samples = 64,
      .loss = 2.3012F,
      .metrics = {{"top1", 25.0}, {"top5", 71.875}},
      .lr = 0.1,
      .seconds = 0.0625,
      .data_seconds = 0.001,
      .epoch_seconds = 0.0625 * static_cast<double>(batch + 1)};
}

EpochRecord epoch(std::int64_t number) {
  return {
      .epoch = number,
      .step = 100 * number,
      .samples = 6400 * number,
      .train =
          {.loss = 1.5,
           .metrics = {{"top1", 50.0}, {"top5", 90.0}},
           .seconds = 10.0},
      .test =
          Score{
              .loss = 1.25,
              .metrics = {{"top1", 87.31}, {"top5", 99.48}},
              .seconds = 1.0},
      .is_best = true,
      .best_by = {.column = "val_top1", .better = Better::kHigher},
      .lr = 0.1,
      .images_per_second = 640.0,
      .times = {.wall = 11.0, .user = 20.25, .system = 0.25}};
}

class CsvObserverTest : public ::testing::Test {
 protected:
  CsvObserverTest() {
    fs_.create_directories("run").value();
  }
  std::string get(const std::string& name) {
    return read_text(fs_, "run/" + name).value();
  }
  MemoryFs fs_;
  RunFiles files_{fs_, [](const Error& error) { raise(error); }};
};

TEST_F(CsvObserverTest, WritesARowPerEpochAndPerInterval) {
  const std::vector<MetricInfo> metrics = infos_of(Metrics{accuracy()});
  CsvObserver observer(
      files_,
      "run",
      results_header(metrics, metrics),
      /*log_interval=*/60);
  for (std::int64_t i = 0; i < 100; ++i) {
    observer.on_step(step(1, i));
  }
  observer.on_epoch(epoch(1));
  EXPECT_EQ(
      get("steps.csv"),
      "step,epoch,loss,lr\n1,1,2.3012,0.1\n61,1,2.3012,0.1\n"
      "100,1,2.3012,0.1\n");
  EXPECT_EQ(
      get("results.csv"),
      "epoch,step,samples,train_loss,train_top1,val_loss,val_top1,val_top5,lr,"
      "images_per_s,epoch_s,user_s,system_s\n"
      "1,100,6400,1.5,50.0,1.25,87.31,99.48,0.1,640.0,11.000,20.250,"
      "0.250\n");
}

TEST_F(CsvObserverTest, JsonLinesHoldTheSameNumbers) {
  JsonObserver observer(files_, "run", /*log_interval=*/1);
  observer.on_step(step(1, 7));
  EpochRecord costs = epoch(1);
  costs.phases.forward = 0.5;
  costs.rank_bytes = {0, 4096};
  observer.on_epoch(costs);
  EXPECT_EQ(
      get("metrics.jsonl"),
      R"({"event":"step","step":8,"epoch":1,"batch":7,"batches":100,)"
      R"("samples":64,"loss":2.3012,"top1":25.0,"top5":71.875,"lr":0.1,)"
      R"("seconds":0.0625,"data_seconds":0.001})"
      "\n"
      R"({"event":"epoch","epoch":1,"step":100,"samples":6400,)"
      R"("train_loss":1.5,"train_top1":50.0,"train_top5":90.0,)"
      R"("val_loss":1.25,"val_top1":87.31,"val_top5":99.48,"best":true,)"
      R"("best_by":"val_top1","lr":0.1,)"
      R"("images_per_s":640.0,"epoch_s":11.0,"user_s":20.25,"system_s":0.25,)"
      R"("data_s":0.0,"forward_s":0.5,"backward_s":0.0,"update_s":0.0,)"
      R"("read_s":0.0,"test_s":0.0,"save_s":0.0,"rank1_bytes":4096.0})"
      "\n");
}

TEST(LineObserver, PrintsTorchvisionsLines) {
  Lines log;
  LineObserver sink(log, 50);
  for (std::int64_t i = 0; i < 100; ++i) {
    sink.on_step(step(1, i));
  }
  sink.on_epoch(epoch(1));
  sink.on_end({.times = {.wall = 1293, .user = 2411, .system = 22}});
  EXPECT_THAT(
      log.lines,
      ElementsAre(
          "Epoch: [1]  [  0/100]  eta: 0:00:06  lr: 0.1  img/s: -  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [1]  [ 50/100]  eta: 0:00:03  lr: 0.1  img/s: 1024.0  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [1]  [ 99/100]  eta: 0:00:00  lr: 0.1  img/s: 1024.0  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [1] Total time: 0:00:11 (user 0:00:20, system 0:00:00), "
          "training at 640.0 img/s",
          "Test:  Acc@1 87.310 Acc@5 99.480",
          "Training time 0:21:33 (user 0:40:11, system 0:00:22)"));
}

// The rate that a line shows.
double rate_of(const std::string& line) {
  return std::stod(line.substr(line.find("img/s: ") + 7));
}

TEST(LineObserver, ARateIsThatOfTheStepsSinceTheLastLine) {
  Lines log;
  LineObserver sink(log, 50);
  sink.on_start({.epoch = 3});
  // Goes on in the middle of an epoch: its clock begins with this start.
  for (std::int64_t batch = 60; batch < 100; ++batch) {
    StepRecord record = step(3, batch);
    record.samples = batch == 99 ? 16 : 64; // the epoch's short last batch
    record.seconds = 1e-6; // one odd step tells nothing
    record.epoch_seconds = static_cast<double>(batch - 59);
    sink.on_step(record);
  }
  StepRecord next = step(4, 0);
  next.epoch_seconds = 0.5;
  sink.on_step(next);
  ASSERT_THAT(log.lines, SizeIs(2));
  EXPECT_NEAR(rate_of(log.lines[0]), (39 * 64 + 16) / 40.0, 0.05);
  EXPECT_THAT(log.lines[1], HasSubstr("  img/s: -  loss: "));
}

TEST(LineObserver, OneStepIsARateWhereEachStepIsShown) {
  Lines log;
  LineObserver sink(log, 1);
  StepRecord first = step(1, 0);
  first.epoch_seconds = 0.5;
  sink.on_step(first);
  ASSERT_THAT(log.lines, SizeIs(1));
  EXPECT_NEAR(rate_of(log.lines[0]), 64 / 0.5, 0.05);
}

TEST(LineObserver, LinesPassTheParserOfTorchvisionLogs) {
  Lines log;
  LineObserver sink(log, 100);
  sink.on_step(step(12, 0));
  ASSERT_THAT(log.lines, SizeIs(1));
  const std::regex parser(
      R"(^Epoch: \[(\d+)\]\s+\[\s*(\d+)/(\d+)\]\s+eta: (\S+(?: days?, \S+)?)\s.*?loss: ([\d.naif+-]+) \(([\d.naif+-]+)\))");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(log.lines[0], match, parser));
  EXPECT_EQ(match[1], "12");
  EXPECT_EQ(match[3], "100");
  EXPECT_EQ(match[5], "2.3012");
}

TEST(RunLog, KeepsMessagesAndDropsRowsThatComeAgain) {
  MemoryFs fs;
  const auto refuse = [](const Error& error) { raise(error); };
  {
    RunFiles files(fs, refuse);
    RunLog log(files, "log.txt");
    log.write(LogLevel::kInfo, "one");
    LineObserver(log, 100).on_step(step(1, 0));
    log.write(LogLevel::kWarning, "two");
    log.write(LogLevel::kDebug, "not kept");
    LineObserver(log, 100).on_step(step(1, 99));
  }
  RunFiles files(fs, refuse);
  files.part().load(ckpt::Value::dict({{"log.txt", 1}}));
  RunLog log(files, "log.txt");
  log.write(LogLevel::kInfo, "resumed");
  const auto lines = split(read_text(fs, "log.txt").value(), '\n');
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_EQ(lines[0], "one");
  EXPECT_THAT(lines[1], HasSubstr("[  0/100]"));
  EXPECT_EQ(lines[2], "warning: two");
  EXPECT_EQ(lines[3], "resumed");
}

} // namespace
} // namespace lockstep::train
