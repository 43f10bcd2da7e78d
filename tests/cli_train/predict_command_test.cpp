// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep predict`: what a run's best checkpoint says of pictures.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli_train/predictions.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/inference/trained_model.h"
#include "tests/cli_train/trained_run.h"
#include "tests/support/python.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using nlohmann::json;
using test::run_program;
using test::TrainedRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Lines without their line feeds.
std::vector<std::string> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

class PredictCommand : public ::testing::Test {
 protected:
  PredictCommand() {
    EXPECT_THAT(made_.problem(), IsEmpty());
  }
  test::ProgramOutcome predict(std::vector<std::string> args) {
    args.insert(args.begin(), {"predict", made_.run()});
    return run_program(args);
  }
  void put(const std::string& name, std::string_view bytes) {
    const auto file = real_fs().create(dir_ / name, 0644).value();
    file->write(as_byte_span(bytes)).value();
    file->close().value();
  }
  const TrainedRun& made_ = TrainedRun::get();
  const test::ScratchDir dir_;
};

TEST_F(PredictCommand, NamesTheClassesOfAFolder) {
  const auto outcome = predict({made_.data()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto lines = lines_of(outcome.out);
  ASSERT_THAT(lines, SizeIs(61));
  EXPECT_EQ(lines[0], "path,class,score");
  int right = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto fields = split(lines[i], ',');
    ASSERT_THAT(fields, SizeIs(3));
    const std::string folder =
        std::filesystem::path(fields[0]).parent_path().filename();
    right += folder == fields[1] ? 1 : 0;
    EXPECT_GT(std::stof(fields[2]), 1.0F / 3);
    EXPECT_LE(std::stof(fields[2]), 1.0F);
  }
  EXPECT_GE(right, 57) << "of 60 easy pictures";
  EXPECT_THAT(lines[1], StartsWith(made_.data() + "/cat/00.png,")) << "sorted";
}

TEST_F(PredictCommand, TopGivesMoreColumnsAndJsonHasTheSameScores) {
  const std::string one = made_.pictures("dog")[3];
  const auto csv = predict({one, "--top", "5"});
  const auto lines = lines_of(csv.out);
  EXPECT_EQ(lines[0], "path,class,score,class_2,score_2,class_3,score_3");
  const auto fields = split(lines[1], ',');
  const auto jsonl = predict({one, "--top=5", "--format=jsonl"});
  const json row = json::parse(jsonl.out);
  EXPECT_EQ(row["path"], one);
  ASSERT_THAT(row["predictions"], SizeIs(3));
  float sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(row["predictions"][i]["class"], fields[2 * i + 1]);
    EXPECT_EQ(
        row["predictions"][i]["score"].get<float>(),
        std::stof(fields[2 * i + 2]));
    sum += std::stof(fields[2 * i + 2]);
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

// The scores of an archive, and what they are of.
struct Archive {
  at::Tensor scores = {};
  std::vector<std::string> paths = {};
};

Archive read_archive(const std::string& file) {
  const ckpt::Value root = ckpt::load(file).value().root;
  Archive archive{.scores = to_tensor(*root.find("scores")->as_tensor())};
  const at::Tensor paths =
      to_tensor(*root.find("paths")->as_tensor()).contiguous();
  for (std::int64_t i = 0; i < paths.size(0); ++i) {
    const at::Tensor row = paths[i];
    std::string text(
        static_cast<const char*>(row.const_data_ptr()),
        static_cast<std::size_t>(row.numel()));
    text.resize(std::strlen(text.c_str()));
    archive.paths.push_back(std::move(text));
  }
  return archive;
}

TEST_F(PredictCommand, ScoresAreThoseOfTheModelsForward) {
  const auto outcome = predict(
      {made_.data(),
       "--format=npz",
       "--output=" + dir_ / "all.npz",
       "--workers=3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Archive archive = read_archive(dir_ / "all.npz");
  // The same pictures by the classes for training, the model by its weights.
  const auto file = train::open_trained(made_.run());
  const auto model = train::make_trained(file, *file.data);
  model->eval();
  const auto folder = image_folder(made_.data(), {.size = 12});
  EXPECT_EQ(folder->pixel_format(), file.data->pixels);
  EXPECT_EQ(folder->class_names(), file.data->class_names);
  Loader loader(folder, {.batch_size = 64});
  at::Tensor images;
  for (const Batch& batch : loader) {
    images = batch.images;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor expected = at::softmax(model->forward(images), 1);
  EXPECT_TRUE(archive.scores.equal(expected));
  for (std::int64_t i = 0; i < folder->size(); ++i) {
    EXPECT_EQ(
        archive.paths[static_cast<std::size_t>(i)],
        folder->sample_name(i));
  }
}

TEST_F(PredictCommand, ScoresAreThoseOfPython) {
  // Of the size that the model takes, so that Python need not resize.
  Image image{.shape = {.channels = 3, .height = 12, .width = 12}};
  for (int i = 0; i < 3 * 12 * 12; ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(i * 89 % 256));
  }
  write_png(dir_ / "x.png", image);
  put("x.rgb",
      {reinterpret_cast<const char*>(image.pixels.data()),
       image.pixels.size()});
  const auto outcome =
      predict({dir_ / "x.png", "--format=npz", "--output=" + dir_ / "x.npz"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Archive archive = read_archive(dir_ / "x.npz");
  const auto lines = test::python_lines(
      "predict_mlp.py",
      {made_.best(), dir_ / "x.rgb", dir_ / "x.npz"});
  ASSERT_THAT(lines, SizeIs(5));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(
        archive.scores[0][i].item<float>(),
        std::stof(lines[static_cast<std::size_t>(i)]),
        1e-6)
        << "another order of sums";
  }
  EXPECT_EQ(lines[3], dir_ / "x.png") << "paths of the archive in NumPy";
  EXPECT_EQ(lines[4], "cat dog \u732b");
}

TEST_F(PredictCommand, BatchesAndOrderChangeTheLastBitsAtMost) {
  std::map<std::string, at::Tensor> first;
  for (const std::string size : {"64", "7", "1"}) {
    const std::string file = dir_ / (size + ".npz");
    std::vector<std::string> args = made_.pictures("dog");
    args.insert(args.end(), {"--format=npz", "--output", file});
    args.insert(args.end(), {"--batch-size", size});
    ASSERT_EQ(predict(args).status, 0);
    const Archive archive = read_archive(file);
    for (std::size_t i = 0; i < archive.paths.size(); ++i) {
      const at::Tensor row = archive.scores[static_cast<std::int64_t>(i)];
      const auto [seen, is_new] = first.emplace(archive.paths[i], row);
      EXPECT_LT((seen->second - row).abs().max().item<float>(), 1e-6);
    }
  }
  EXPECT_THAT(first, SizeIs(20));
}

TEST_F(PredictCommand, TwoReplicasShareABatch) {
  const auto one = predict({made_.data(), "--devices=cpu", "--top=3"});
  const auto two = predict({made_.data(), "--devices=cpu*2", "--top=3"});
  EXPECT_EQ(two.status, 0) << two.err;
  const auto lines = lines_of(one.out);
  const auto others = lines_of(two.out);
  ASSERT_EQ(lines.size(), others.size());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto fields = split(lines[i], ',');
    const auto same = split(others[i], ',');
    EXPECT_EQ(fields[0] + fields[1], same[0] + same[1]);
    EXPECT_NEAR(std::stof(fields[2]), std::stof(same[2]), 1e-6);
  }
}

TEST_F(PredictCommand, ABadImageEndsItOrIsSkippedByName) {
  put("bad.png", "no image at all");
  const std::vector<std::string> images{
      made_.pictures("cat")[0],
      dir_ / "bad.png",
      dir_ / "none.jpg",
      made_.pictures("dog")[0]};
  const auto stopped = predict(images);
  EXPECT_EQ(stopped.status, 3);
  EXPECT_THAT(stopped.err, HasSubstr(dir_ / "bad.png"));
  EXPECT_THAT(stopped.err, HasSubstr("(E_IMAGE_FORMAT)"));
  auto args = images;
  args.emplace_back("--on-bad-image=skip");
  const auto skipped = predict(args);
  EXPECT_EQ(skipped.status, 4) << "of the worst";
  const auto lines = lines_of(skipped.out);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[1], StartsWith(images[0] + ",cat,"));
  EXPECT_THAT(lines[2], StartsWith(images[3] + ",dog,"));
  EXPECT_THAT(skipped.err, HasSubstr(dir_ / "bad.png"));
  EXPECT_THAT(skipped.err, HasSubstr(dir_ / "none.jpg"));
  EXPECT_THAT(skipped.err, HasSubstr("2 of 4 images are left out"));
}

TEST_F(PredictCommand, ReadsAListOfPathsAndWritesAFile) {
  put("list",
      made_.pictures("cat")[1] + "\r\n\n" + made_.pictures("dog")[1] + "\n");
  const auto outcome = test::run_shell(format(
      "'" LOCKSTEP_BINARY_DIR
      "/bin/lockstep' predict '{}' - --output '{}' <'{}'",
      made_.run(),
      dir_ / "out.csv",
      dir_ / "list"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto lines = lines_of(read_text(real_fs(), dir_ / "out.csv").value());
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[1], HasSubstr("/cat/01.png,cat,"));
}

TEST_F(PredictCommand, TakesACheckpointFileAndARunWithoutABestOne) {
  const std::string picture = made_.pictures("cat")[0];
  const auto best = predict({picture});
  const auto file = run_program({"predict", made_.best(), picture});
  EXPECT_EQ(file.out, best.out);
  ASSERT_EQ(
      test::run_shell(format(
                          "cp -a '{0}' '{1}' && rm '{1}/model_best.pth.tar'",
                          made_.run(),
                          dir_ / "run"))
          .status,
      0);
  const auto newest = run_program({"predict", dir_ / "run", picture});
  EXPECT_EQ(newest.status, 0) << newest.err;
  EXPECT_THAT(newest.out, HasSubstr(picture + ",cat,"));
  EXPECT_EQ(newest.err, "");
}

TEST_F(PredictCommand, EveryMistakeIsNamed) {
  const std::string picture = made_.pictures("cat")[0];
  put("weights.txt", "nothing");
  std::filesystem::create_directories(dir_ / "empty");
  struct Row {
    std::vector<std::string> args;
    int status;
    std::string text;
  };
  const std::vector<Row> rows{
      {{}, 2, "no run or checkpoint is named"},
      {{made_.run()}, 2, "no image is named"},
      {{dir_ / "none", picture}, 4, "no such run folder or checkpoint"},
      {{dir_ / "empty", picture}, 4, "the folder holds no checkpoint"},
      {{dir_ / "weights.txt", picture}, 3, dir_ / "weights.txt"},
      {{made_.run(), dir_ / "empty"}, 4, "there is no image in the folder"},
      {{made_.run(), picture, "--format=xml"}, 2, "expected csv, jsonl, npz"},
      {{made_.run(), picture, "--format=npz"}, 2, "--format npz needs a file"},
      {{made_.run(), picture, "--tops=2"}, 2, "did you mean '--top'?"},
      {{made_.run(), picture, "--on-bad-image=go"}, 2, "expected stop, skip"},
      {{made_.run(), picture, "--devices=cup"}, 2, "cup"},
      {{made_.run(), picture, "--output="}, 2, "--output has an empty value"},
      {{made_.run(), ""}, 2, "an argument is empty; expected"},
      {{made_.run(), picture, "--devices", ""}, 2, "expected LIST"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> args{"predict"};
    args.insert(args.end(), row.args.begin(), row.args.end());
    const auto outcome = run_program(args);
    EXPECT_EQ(outcome.status, row.status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.text));
    EXPECT_EQ(outcome.out, "") << row.text;
  }
}

TEST_F(PredictCommand, FilesThatCannotBeUsedSayWhy) {
  const std::string picture = made_.pictures("cat")[0];
  const auto refused = [&](const std::string& file) {
    const auto outcome = run_program({"predict", file, picture});
    EXPECT_NE(outcome.status, 0);
    return outcome.err;
  };
  EXPECT_THAT(
      refused(test::changed_checkpoint(
          made_.best(),
          dir_ / "own.pt",
          [](auto& root) { root.set("arch", "own:Net"); })),
      HasSubstr("'own:Net': only that program can make it"));
  EXPECT_THAT(
      refused(test::changed_checkpoint(
          made_.best(),
          dir_ / "old.pt",
          [](auto& root) { test::drop_entry(root, "data"); })),
      HasSubstr("(E_NO_TRAINED_DATA)"));
  EXPECT_THAT(
      refused(test::changed_checkpoint(
          made_.best(),
          dir_ / "bare.pt",
          [](auto& root) {
            const ckpt::Value weights = *root.find("state_dict");
            root = weights;
          })),
      HasSubstr("(E_NOT_A_RUN)"));
  std::string bytes = read_text(real_fs(), made_.best()).value();
  bytes[bytes.size() / 2] ^= 1;
  put("damaged.pt", bytes);
  EXPECT_THAT(refused(dir_ / "damaged.pt"), HasSubstr(dir_ / "damaged.pt"));
}

TEST(Predictions, FieldsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_field("a b"), "a b");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\"\n"), "\"say \"\"a\"\"\n\"");
}

// As torch.topk has it.
TEST(Predictions, AScoreThatIsNoNumberIsTheHighest) {
  const std::vector<float> scores{0.5F, NAN, 0.75F, INFINITY};
  const PredictionOptions options{.names = {"a", "b", "c", "d"}, .top = 4};
  EXPECT_EQ(csv_row(options, "x", scores), "x,b,nan,d,inf,c,0.75,a,0.5\n");
}

TEST(Predictions, LabelsAndValuesHaveAColumnEach) {
  const std::vector<float> scores{0.25F, 0.75F};
  PredictionOptions options{
      .kind = train::OutputKind::kLabels,
      .names = {"red", "big,old"}};
  EXPECT_EQ(csv_header(options), "path,red,\"big,old\"\n");
  EXPECT_EQ(csv_row(options, "a.png", scores), "a.png,0.25,0.75\n");
  EXPECT_EQ(
      json_row(options, "a.png", scores),
      "{\"path\":\"a.png\",\"predictions\":[{\"class\":\"red\",\"score\":0.25},"
      "{\"class\":\"big,old\",\"score\":0.75}]}\n");
  options.top = 1;
  EXPECT_EQ(csv_header(options), "path,class,score\n");
  EXPECT_EQ(csv_row(options, "a.png", scores), "a.png,\"big,old\",0.75\n");
  options = {.kind = train::OutputKind::kValues, .names = {"x", "y"}};
  EXPECT_EQ(csv_header(options), "path,x,y\n");
  EXPECT_EQ(
      json_row(options, "a.png", scores),
      "{\"path\":\"a.png\",\"values\":[{\"name\":\"x\",\"value\":0.25},"
      "{\"name\":\"y\",\"value\":0.75}]}\n");
}

} // namespace
} // namespace lockstep::cli_train
