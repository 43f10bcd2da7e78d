// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/request.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/settings/internal/commands.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::cli_train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RequestTest : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    const auto file = real_fs().create(dir_ / name, 0644).value();
    file->write(as_byte_span(text)).value();
    file->close().value();
  }
  /// A run that was killed before its first checkpoint.
  void put_run(const std::string& name, std::string_view args) {
    real_fs().create_directories(dir_ / name).value();
    put(name + "/args.yaml", args);
  }
  Request request(const std::vector<std::string>& args) {
    return resolve(parse_command_line(args));
  }
  /// "from" of a flag.
  static std::string source(const Request& request, std::string_view key) {
    return request.sources.of(*train::find_key(key), "default");
  }

  const test::ScratchDir dir_;
};

TEST_F(RequestTest, AFolderOfTheConfigFileIsWhereAutoLooks) {
  put_run("run", "model: mlp\nbatch_size: 8\nlr: 0.5\n");
  put("my.yaml", "output: " + dir_ / "run" + "\nlr: 0.25\n");
  const Request found = request({"--resume=auto", "-c", dir_ / "my.yaml"});
  ASSERT_TRUE(found.resumption);
  EXPECT_EQ(found.resumption->folder, dir_ / "run");
  EXPECT_EQ(found.config.batch_size, 8) << "the run's";
  EXPECT_EQ(found.config.lr, 0.25) << "the file's";
  EXPECT_EQ(source(found, "model"), dir_ / "run/args.yaml:1");
  EXPECT_EQ(source(found, "lr"), dir_ / "my.yaml:2");
  EXPECT_EQ(source(found, "epochs"), "default");
}

TEST_F(RequestTest, ARecipeWinsOverDefaultsAlone) {
  put("my.yaml", "momentum: 0.5\nlr: 0.25\n");
  const Request found =
      request({"--recipe=finetune", "-c", dir_ / "my.yaml", "--lr=0.01"});
  EXPECT_EQ(found.config.opt, "adamw");
  EXPECT_THAT(source(found, "opt"), HasSubstr("recipe finetune:"));
  EXPECT_EQ(found.config.momentum, 0.5);
  EXPECT_EQ(found.config.lr, 0.01);
  EXPECT_EQ(source(found, "lr"), "the command line");
  EXPECT_EQ(source(found, "seed"), "default");
  EXPECT_THAT(found.recipe, HasSubstr("layer_decay: 0.75"));
  put_run("run", "opt: sgd\n");
  EXPECT_EQ(
      request({"--recipe=finetune", "--resume=" + dir_ / "run"}).config.opt,
      "sgd")
      << "a run goes on with its own settings";
}

TEST_F(RequestTest, EveryRecipeIsOneOfSettings) {
  for (const std::string_view name : train::kRecipes) {
    const Request found = request({format("--recipe={}", name)});
    EXPECT_NE(found.config, train::TrainConfig()) << name;
    EXPECT_TRUE(found.recipe.starts_with("# ")) << name;
  }
  try {
    request({"--recipe=finetun"});
    ADD_FAILURE() << "accepted";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_FLAG_VALUE");
    EXPECT_THAT(error.error().hint, HasSubstr("did you mean finetune"));
  }
}

TEST_F(RequestTest, AJobThatIsStartedAgainStaysInItsFolder) {
  put_run("runs/exp", "batch_size: 8\n");
  put("my.yaml", "name: exp\n");
  const std::string begun = dir_ / "runs/exp";
  const std::string above = "--output=" + dir_ / "runs";
  const auto folder_of = [&](const std::vector<std::string>& args) {
    const Request found = resolve(parse_command_line(args), begun);
    EXPECT_EQ(found.resumption->folder, begun);
    EXPECT_EQ(found.config.batch_size, 8);
    return train::named_folder(found.config);
  };
  EXPECT_EQ(folder_of({}), begun);
  EXPECT_EQ(folder_of({"--name=exp"}), begun);
  EXPECT_EQ(folder_of({above, "--name=exp"}), begun);
  EXPECT_EQ(folder_of({above}), begun);
  EXPECT_EQ(folder_of({"--resume=auto", above, "--name=exp"}), begun);
  EXPECT_EQ(folder_of({"-c", dir_ / "my.yaml"}), begun);
  const test::ScopedVariable name("LOCKSTEP_NAME", "exp");
  EXPECT_EQ(folder_of({}), begun);
}

TEST_F(RequestTest, AFlagNamesTheFolderBeforeTheConfigFile) {
  put_run("run", "batch_size: 8\n");
  put_run("other", "batch_size: 16\n");
  put("my.yaml", "output: " + dir_ / "run\n");
  EXPECT_EQ(
      request({"--resume=auto",
               "-c",
               dir_ / "my.yaml",
               "--output=" + dir_ / "other"})
          .config.batch_size,
      16);
}

TEST_F(RequestTest, AConfigFileThatResumesIsRefused) {
  put_run("run", "batch_size: 8\n");
  put("my.yaml", "lr: 1\nresume: " + dir_ / "run\n");
  try {
    request({"-c", dir_ / "my.yaml"});
    ADD_FAILURE() << "accepted";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_CONFIG_KEY");
    EXPECT_EQ(error.error().path, dir_ / "my.yaml:2:9");
    EXPECT_THAT(error.error().hint, HasSubstr("--resume on the command line"));
  }
  put("empty.yaml", "resume:\n");
  EXPECT_EQ(request({"-c", dir_ / "empty.yaml"}).config.resume, "");
}

TEST_F(RequestTest, NoCudaCountsMoreThanTheDevicesOfTheRun) {
  put_run("run", "devices: cuda:0\n");
  const Request found = request({"--resume", dir_ / "run", "--no-cuda"});
  EXPECT_EQ(found.config.devices, "");
  EXPECT_EQ(source(found, "devices"), "--no-cuda");
  put_run("two", "devices: cpu*2\n");
  EXPECT_EQ(
      request({"--resume", dir_ / "two", "--no-cuda"}).config.devices,
      "cpu*2");
}

TEST_F(RequestTest, DevicesCountMoreThanNoCudaOfTheRun) {
  put_run("run", "cuda: false\n");
  const Request found = request({"--resume", dir_ / "run", "--devices=cuda"});
  EXPECT_TRUE(found.config.cuda);
  EXPECT_EQ(source(found, "cuda"), "--devices");
  // Both given now contradict each other: choose_devices refuses them.
  const Request both =
      request({"--resume", dir_ / "run", "--devices=cuda", "--no-cuda"});
  EXPECT_FALSE(both.config.cuda);
  EXPECT_EQ(both.config.devices, "cuda");
}

TEST_F(RequestTest, AFolderOfPicturesIsTakenForData) {
  real_fs().create_directories(dir_ / "animals/cat").value();
  real_fs().create_directories(dir_ / "other").value();
  put("animals/cat/1.jpg", "");
  const std::string folder = dir_ / "animals";
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{folder},
        {"--data=" + folder},
        {"--data-dir=" + folder},
        {"--data=folder", "--data-dir=" + folder}}) {
    const Request found = request(args);
    EXPECT_EQ(found.config.data, "folder") << args[0];
    EXPECT_EQ(found.config.data_dir, folder) << args[0];
  }
  EXPECT_EQ(source(request({folder}), "data"), "the looks of the data");
  EXPECT_EQ(source(request({"--data=" + folder}), "data_dir"), "--data");
  // A file as well, and other kinds.
  put("t.csv", "a,b\n1,2\n");
  for (const std::string& arg : {dir_ / "t.csv", "--data=" + dir_ / "t.csv"}) {
    EXPECT_EQ(request({arg}).config.data, "csv");
    EXPECT_EQ(request({arg}).config.data_dir, dir_ / "t.csv");
  }
  // What is named is not guessed.
  EXPECT_EQ(request({"--data=mnist", folder}).config.data, "mnist");
  for (const std::string& other :
       {dir_ / "other", "--data=" + dir_ / "other"}) {
    try {
      request({other});
      ADD_FAILURE() << "no error";
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().detail, "E_NO_DATA");
      EXPECT_EQ(exception.error().path, dir_ / "other");
      EXPECT_THAT(exception.error().hint, HasSubstr("for each class"));
    }
  }
}

TEST_F(RequestTest, WhatIsNoDataIsToldWithWhatWasLookedFor) {
  const auto refused = [&](const std::string& arg) {
    try {
      request({arg});
    } catch (const Exception& exception) {
      return exception.error();
    }
    return Error();
  };
  for (const std::string arg :
       {"--data=no/such", "no/such", "--data-dir=no/such"}) {
    const Error error = refused(arg);
    EXPECT_EQ(error.detail, "E_NO_DATA") << arg;
    EXPECT_THAT(
        error.message,
        HasSubstr("'no/such' is neither a folder or file"));
    EXPECT_THAT(
        error.message,
        HasSubstr(std::filesystem::current_path().string() + "/no/such"));
    EXPECT_THAT(error.message, HasSubstr("fashion-mnist"));
  }
  EXPECT_THAT(refused("--data=minst").hint, HasSubstr("--data mnist?"));
  EXPECT_THAT(refused("--data=nope").hint, Not(HasSubstr("did you mean")));
}

TEST_F(RequestTest, WithoutDataItSaysWhatWouldBeTrained) {
  EXPECT_EQ(settle_default_data(request({"--data=mnist"}), dir_.path()), "");
  EXPECT_THAT(
      settle_default_data(request({})),
      HasSubstr("--data is not given: FashionMNIST"));
  try {
    settle_default_data(request({"--epochs=3"}), dir_ / "nowhere");
    ADD_FAILURE() << "no error";
  } catch (const Exception& exception) {
    const Error& error = exception.error();
    EXPECT_EQ(error_info(error.code).exit_code, 2);
    EXPECT_THAT(error.message, HasSubstr("resnet18 for 3 epochs with sgd"));
    EXPECT_THAT(error.message, HasSubstr(dir_ / "nowhere"));
    EXPECT_THAT(error.hint, HasSubstr("--data DIR"));
  }
  put("my.yaml", "data_dir:\n");
  EXPECT_THROW(
      settle_default_data(request({"-c", dir_ / "my.yaml"}), dir_ / "nowhere"),
      Exception)
      << "an empty folder is none";
}

TEST_F(RequestTest, FewPicturesGetSmallBatchesAndARateThatGoesWithThem) {
  put("my.yaml", "lr: 0.5\n");
  struct Row {
    std::vector<std::string> args;
    std::int64_t samples;
    std::int64_t batch_size;
    double lr;
  };
  for (const Row& row :
       {Row{{"--data=folder"}, 60, 8, 0.1 * 8 / 256},
        Row{{"--data=folder"}, 480, 32, 0.1 * 32 / 256},
        Row{{"--data=folder"}, 1535, 64, 0.1 * 64 / 256},
        Row{{"--data=folder"}, 1536, 128, 0.1 * 128 / 256},
        Row{{"--data=folder", "--lr=0.1"}, 5000, 128, 0.1},
        Row{{"--data=folder", "--batch-size=64"}, 60, 64, 0.1},
        Row{{"--data=folder", "-c", dir_ / "my.yaml"}, 60, 8, 0.5},
        Row{{"--data=fashion-mnist"}, 60, 128, 0.1}}) {
    Request asked = request(row.args);
    const train::TrainConfig before = asked.config;
    const std::string text = fit_to_samples(asked, row.samples);
    EXPECT_EQ(asked.config.batch_size, row.batch_size) << row.samples;
    EXPECT_DOUBLE_EQ(asked.config.lr, row.lr) << row.samples;
    const bool has_chosen = asked.config.batch_size != before.batch_size ||
                            asked.config.lr != before.lr;
    EXPECT_EQ(!text.empty(), has_chosen) << text;
  }
}

} // namespace
} // namespace lockstep::cli_train
