// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep eval`: the test of a run again, in more words.
#include <cmath>
#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/csv.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/data/images.h"
#include "tests/cli_train/trained_run.h"
#include "tests/support/json_schema.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using nlohmann::json;
using test::run_program;
using test::TrainedRun;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class EvalCommand : public ::testing::Test {
 protected:
  EvalCommand() {
    EXPECT_THAT(made_.problem(), IsEmpty());
  }
  // What --json gives, which is checked against its schema.
  json evaluated(std::vector<std::string> args) {
    args.insert(args.begin(), "eval");
    args.emplace_back("--json");
    const auto outcome = run_program(args);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document["schema"], "lockstep.eval/1");
    EXPECT_EQ(test::violation_of_its_schema(document), "");
    return document["result"];
  }
  // Pictures of these classes, in colours that the model knows them by.
  std::string folder(const std::vector<std::pair<std::string, int>>& classes) {
    for (const auto& [name, channel] : classes) {
      for (int i = 0; i < 6; ++i) {
        test::write_picture(
            format("{}/{}/{}.png", dir_ / "more", name, i),
            channel,
            100 + i);
      }
    }
    return dir_ / "more";
  }
  const TrainedRun& made_ = TrainedRun::get();
  const test::ScratchDir dir_;
};

double metric(const json& result, const std::string& name) {
  for (const json& row : result["metrics"]) {
    if (row["name"] == name) {
      return row["value"];
    }
  }
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

json table(const json& result, const std::string& name) {
  for (const json& each : result["tables"]) {
    if (each["name"] == name) {
      return each;
    }
  }
  ADD_FAILURE() << "no table " << name;
  return {};
}

double sum_of(const json& matrix) {
  double sum = 0;
  for (const json& row : matrix["rows"]) {
    for (const json& count : row["values"]) {
      sum += count.get<double>();
    }
  }
  return sum;
}

TEST_F(EvalCommand, HasTheNumbersOfTheRunsTest) {
  const json result = evaluated({made_.run()});
  const CsvTable results(
      read_text(real_fs(), made_.run() + "/results.csv").value());
  const auto epoch = result["epoch"].get<std::size_t>();
  EXPECT_EQ(metric(result, "top1"), results.column("val_top1").at(epoch - 1));
  EXPECT_NEAR(
      result["loss"].get<double>(),
      results.column("val_loss").at(epoch - 1),
      1e-6);
  EXPECT_EQ(result["samples"], 12) << "a fifth of each class";
  EXPECT_EQ(result["task"], "classification");
  EXPECT_EQ(result["model"], "mlp");
  EXPECT_EQ(sum_of(table(result, "confusion")), 12);
  EXPECT_THAT(
      table(result, "confusion")["columns"],
      ElementsAre("cat", "dog", "\u732b"));
  EXPECT_THAT(table(result, "per_class")["columns"], Contains("auroc"));
  EXPECT_GE(metric(result, "f1_macro"), 0.9);
}

TEST_F(EvalCommand, PartsAndBatchesAreAsAsked) {
  EXPECT_EQ(evaluated({made_.run(), "--part=train"})["samples"], 48);
  const json all = evaluated({made_.run(), "--part=all", "--batch-size=7"});
  EXPECT_EQ(all["samples"], 60);
  EXPECT_EQ(sum_of(table(all, "confusion")), 60);
  EXPECT_THAT(all["worst"], SizeIs(25));
  double before = INFINITY;
  for (const json& row : all["worst"]) {
    EXPECT_LE(row["loss"].get<double>(), before);
    before = row["loss"].get<double>();
  }
  EXPECT_THAT(evaluated({made_.run(), "--worst=2"})["worst"], SizeIs(2));
}

TEST_F(EvalCommand, WritesItsReport) {
  const std::string report = dir_ / "report";
  const auto outcome =
      run_program({"eval", made_.run(), "--part=all", "--output", report});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("60 samples of folder"));
  EXPECT_THAT(outcome.out, HasSubstr("rows: targets, columns: predictions\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nper_class"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          report + ": metrics.json, worst.csv, confusion.svg, worst.png\n"));
  const json metrics = test::read_json(report + "/metrics.json");
  EXPECT_EQ(test::violation_of_its_schema(metrics), "");
  const std::string csv = read_text(real_fs(), report + "/worst.csv").value();
  EXPECT_TRUE(csv.starts_with("sample_name,target,prediction,loss\n"));
  EXPECT_THAT(split(csv, '\n'), SizeIs(27));
  EXPECT_THAT(csv, HasSubstr(".png,"));
  const std::string svg =
      read_text(real_fs(), report + "/confusion.svg").value();
  EXPECT_THAT(svg, HasSubstr("\u732b</text>"));
  const Image sheet = read_image(report + "/worst.png");
  EXPECT_EQ(sheet.shape.width, 5 * (96 + 4) + 4) << "12 pixels, magnified";
  EXPECT_EQ(sheet.shape.height, 5 * (96 + 4) + 4);
}

TEST_F(EvalCommand, OtherDataAreReadByTheNamesOfTheirClasses) {
  // Class 0 of these is the model's class 1, class 1 its class 2.
  const std::string other = folder({{"dog", 1}, {"\u732b", 2}});
  const json result = evaluated({made_.run(), "--data", other, "--part=all"});
  EXPECT_EQ(result["samples"], 12);
  EXPECT_EQ(result["data_dir"], other);
  const json& matrix = table(result, "confusion");
  EXPECT_THAT(matrix["rows"], SizeIs(3));
  EXPECT_EQ(sum_of(json{{"rows", {matrix["rows"][0]}}}), 0) << "no cat";
  EXPECT_GE(metric(result, "top1"), 90);
}

TEST_F(EvalCommand, AClassThatTheModelDoesNotKnowIsRefused) {
  const std::string other = folder({{"cat", 0}, {"cow", 1}});
  const auto outcome = run_program({"eval", made_.run(), "--data", other});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the model does not know 'cow'"));
  EXPECT_THAT(outcome.err, HasSubstr("(E_CLASSES)"));
}

TEST_F(EvalCommand, OlderCheckpointsAreJudgedByTheDataOfTheirRun) {
  test::changed_checkpoint(made_.best(), dir_ / "old.pt", [](auto& root) {
    test::drop_entry(root, "data");
  });
  const json old = evaluated({dir_ / "old.pt"});
  const json now = evaluated({made_.run()});
  EXPECT_EQ(old["metrics"], now["metrics"]);
  EXPECT_EQ(old["worst"], now["worst"]);
}

TEST_F(EvalCommand, WhatOnlyAProgramHasItMustJudgeItself) {
  const auto refused = [&](const std::string& key, const char* value) {
    const std::string file = test::changed_checkpoint(
        made_.best(),
        dir_ / (key + ".pt"),
        [&](auto& root) {
          if (key == "arch") {
            root.set(key, value);
          } else if (key == "task") {
            ckpt::Value data = *root.find("data");
            data.set(key, value);
          } else {
            ckpt::Value args = *root.find("args");
            args.set(key, value);
          }
        });
    const auto outcome = run_program({"eval", file});
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused("arch", "own:Net"), HasSubstr("(E_OTHER_MODEL)"));
  EXPECT_THAT(refused("task", "own:hinge"), HasSubstr("(E_TASK)"));
  EXPECT_THAT(refused("data", "own:Made"), HasSubstr("(E_OWN_PARTS)"));
}

TEST_F(EvalCommand, AnotherProgramsCheckpointDoesNotSayItsData) {
  const std::string file = test::changed_checkpoint(
      made_.best(),
      dir_ / "foreign.pt",
      [](auto& root) {
        for (const char* key : {"data", "lockstep", "args"}) {
          test::drop_entry(root, key);
        }
      });
  const auto outcome = run_program({"eval", file});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("(E_NO_TRAINED_DATA)"));
}

TEST_F(EvalCommand, AnotherCheckpointThanTheBestIsToldOrRefused) {
  const std::string picture = made_.pictures("cat")[0];
  const auto shell = [&](std::string_view command) {
    ASSERT_EQ(
        test::run_shell(format("cd '{}' && {}", dir_.path(), command)).status,
        0);
  };
  shell(format(
      "cp -a '{}' run && ln -sf gone run/model_best.pth.tar",
      made_.run()));
  const auto gone = run_program({"predict", dir_ / "run", picture});
  EXPECT_EQ(gone.status, 4);
  EXPECT_THAT(
      gone.err,
      HasSubstr("link to the best checkpoint leads to is gone"));
  EXPECT_THAT(gone.err, HasSubstr(dir_ / "run/model_best.pth.tar"));
  // Without a best one the newest is taken, if it is whole.
  shell(
      "rm run/model_best.pth.tar && truncate -s 99 "
      "$(readlink -f run/checkpoint.pth.tar)");
  const auto older = run_program({"predict", dir_ / "run", picture});
  EXPECT_EQ(older.status, 0) << older.err;
  EXPECT_THAT(older.err, HasSubstr("a checkpoint cannot be used: "));
  const auto judged = run_program({"eval", dir_ / "run"});
  EXPECT_THAT(judged.out, HasSubstr("a checkpoint cannot be used: "));
}

// As for 'lockstep train'.
TEST_F(EvalCommand, AVariableNamesTheDevices) {
  const test::ScopedVariable devices("LOCKSTEP_DEVICES", "cup");
  const std::string picture = made_.pictures("cat")[0];
  for (std::vector<std::string> args :
       {std::vector<std::string>{"eval", made_.run()},
        {"predict", made_.run(), picture}}) {
    const auto refused = run_program(args);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("cup"));
    args.emplace_back("--devices=cpu");
    EXPECT_EQ(run_program(args).status, 0) << "what is typed counts more";
  }
}

TEST_F(EvalCommand, EveryMistakeIsNamed) {
  struct Row {
    std::vector<std::string> args;
    int status;
    std::string text;
  };
  const std::vector<Row> rows{
      {{}, 2, "no run or checkpoint is named"},
      {{made_.run(), "more"}, 2, "'more' is left over"},
      {{dir_ / "none"}, 4, "no such run folder or checkpoint"},
      {{made_.run(), "--data", dir_ / "none"}, 4, "no data set is called so"},
      {{made_.run(), "--data", ""}, 2, "--data has an empty value"},
      {{made_.run(), "--part=half"}, 2, "expected test, train, all"},
      {{made_.run(), "--data=fashion-mnist"}, 1, "(E_OTHER_DATA)"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> args{"eval"};
    args.insert(args.end(), row.args.begin(), row.args.end());
    args.emplace_back("--json");
    const auto outcome = run_program(args);
    EXPECT_EQ(outcome.status, row.status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.text));
    const json document = json::parse(outcome.out);
    EXPECT_EQ(test::violation_of_its_schema(document), "");
    EXPECT_FALSE(document["ok"]);
  }
}

TEST(EvalOfFashionMnist, HasNumbersForClassNames) {
  const test::ScratchDir dir;
  const auto trained = run_program(
      {"train",
       "--model=mlp",
       "--epochs=1",
       "--max-train-samples=512",
       "--max-eval-samples=256",
       "--lr=0.05",
       "--threads=1",
       "--quiet",
       "--output=" + dir / "run"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto outcome = run_program({"eval", dir / "run"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("10,000 samples of fashion-mnist"));
  EXPECT_THAT(outcome.out, HasSubstr("\n9 "));
  EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
}

} // namespace
} // namespace lockstep::cli_train
