// SPDX-License-Identifier: BSD-3-Clause
#include <regex>

#include <gmock/gmock.h>

#include "lockstep/base/memory_fs.h"
#include "lockstep/train/csv_sink.h"
#include "lockstep/train/line_sink.h"
#include "lockstep/train/log_file.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
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
      .step = epoch * 100 + batch + 1,
      .batch = batch,
      .batches = 100,
      .samples = 64,
      .loss = 2.3012F,
      .top1 = 25.0,
      .top5 = 71.875,
      .lr = 0.1,
      .seconds = 0.0625,
      .data_seconds = 0.001};
}

EpochRecord epoch(std::int64_t number) {
  return {
      .epoch = number,
      .step = 100 * (number + 1),
      .samples = 6400 * (number + 1),
      .train = {.loss = 1.5, .top1 = 50.0, .top5 = 90.0, .seconds = 10.0},
      .test = {.loss = 1.25, .top1 = 87.31, .top5 = 99.48, .seconds = 1.0},
      .lr = 0.1,
      .images_per_second = 640.0};
}

class CsvSinkTest : public ::testing::Test {
 protected:
  CsvSinkTest() {
    fs_.create_directories("run").value();
  }
  std::string get(std::string_view name) {
    return read_text(fs_, folder_.file(name)).value();
  }
  MemoryFs fs_;
  RunFolder folder_{.path = "run"};
};

TEST_F(CsvSinkTest, WritesARowPerEpochAndPerInterval) {
  CsvSink sink(fs_, folder_, /*start_epoch=*/0, /*log_interval=*/60);
  for (std::int64_t i = 0; i < 100; ++i) {
    sink.on_step(step(0, i));
  }
  sink.on_epoch(epoch(0));
  EXPECT_EQ(
      get("steps.csv"),
      "step,epoch,loss,lr\n1,0,2.3012,0.1\n61,0,2.3012,0.1\n"
      "100,0,2.3012,0.1\n");
  EXPECT_EQ(
      get("results.csv"),
      std::string(kResultsHeader) +
          "\n0,100,6400,1.5,50.0,1.25,87.31,99.48,0.1,640.0,10.000\n");
}

TEST_F(CsvSinkTest, ResumeDropsRowsOfEpochsThatAreDoneAgain) {
  {
    CsvSink sink(fs_, folder_, 0, 100);
    for (std::int64_t e = 0; e < 3; ++e) {
      sink.on_step(step(e, 0));
      sink.on_epoch(epoch(e));
    }
  }
  CsvSink sink(fs_, folder_, /*start_epoch=*/1, 100);
  sink.on_step(step(1, 0));
  EXPECT_EQ(
      get("steps.csv"),
      "step,epoch,loss,lr\n1,0,2.3012,0.1\n101,1,2.3012,0.1\n");
}

TEST_F(CsvSinkTest, ResumeDropsAHalfWrittenRow) {
  {
    CsvSink sink(fs_, folder_, 0, 100);
    sink.on_step(step(0, 0));
    fs_.append(folder_.file("steps.csv"))
        .value()
        ->write(as_byte_span("51,0,2."))
        .value();
  }
  const CsvSink sink(fs_, folder_, 1, 100);
  EXPECT_EQ(get("steps.csv"), "step,epoch,loss,lr\n1,0,2.3012,0.1\n");
}

TEST(LineSink, PrintsTorchvisionsLines) {
  Lines log;
  LineSink sink(log, 50);
  for (std::int64_t i = 0; i < 100; ++i) {
    sink.on_step(step(0, i));
  }
  sink.on_epoch(epoch(0));
  EXPECT_THAT(
      log.lines,
      ElementsAre(
          "Epoch: [0]  [  0/100]  eta: 0:00:06  lr: 0.1  img/s: 1024.0  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [0]  [ 50/100]  eta: 0:00:03  lr: 0.1  img/s: 1024.0  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [0]  [ 99/100]  eta: 0:00:00  lr: 0.1  img/s: 1024.0  "
          "loss: 2.3012 (2.3012)  acc1: 25.0000 (25.0000)  "
          "acc5: 71.8750 (71.8750)  time: 0.0625  data: 0.0010",
          "Epoch: [0] Total time: 0:00:10 (640.0 img/s)",
          "Test:  Acc@1 87.310 Acc@5 99.480"));
}

TEST(LineSink, LinesPassTheParserOfTorchvisionLogs) {
  Lines log;
  LineSink sink(log, 100);
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

TEST(LogFile, AppendsLinesOverSeveralStarts) {
  MemoryFs fs;
  LogFile(fs, "log.txt").write(LogLevel::kInfo, "one");
  {
    LogFile log(fs, "log.txt");
    log.write(LogLevel::kWarning, "two");
    log.write(LogLevel::kDebug, "not kept");
  }
  EXPECT_EQ(read_text(fs, "log.txt").value(), "one\nwarning: two\n");
}

} // namespace
} // namespace lockstep::train
