// SPDX-License-Identifier: BSD-3-Clause
//
// Every model of the registry that classifies, on every data set: a step and a
// test.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/data/open_dataset.h"
#include "lockstep/models/model.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/trainer.h"
#include "tests/data/idx_fixture.h"

namespace lockstep::train {
namespace {

using test::IdxFolder;

constexpr std::int64_t kSamples = 2;

/// A folder with a few images in the files of MNIST and its like.
void write_test_set(const IdxFolder& folder) {
  const std::uint32_t count = IdxFolder::kCount;
  folder.write(
      "t10k-images-idx3-ubyte",
      test::idx({count, 28, 28}, test::image_pixels(count)));
  folder.write(
      "t10k-labels-idx1-ubyte",
      test::idx({count}, test::label_values(count)));
}

void run_once(Setup& setup) {
  for (Loader<Batch>* loader :
       {setup.train_data.get(), setup.test_data.get()}) {
    std::vector<std::int64_t> order(kSamples);
    std::iota(order.begin(), order.end(), 0);
    loader->start_epoch(order, /*epoch=*/0);
    const auto batch = loader->next();
    const bool is_training = loader == setup.train_data.get();
    const BatchScore score = (is_training ? setup.strategy->step(*batch)
                                          : setup.strategy->test(*batch))
                                 .read();
    EXPECT_EQ(score.samples, kSamples);
    EXPECT_TRUE(std::isfinite(score.loss));
  }
}

std::vector<std::string> classifiers() {
  std::vector<std::string> names = model_names();
  std::erase_if(names, [](const std::string& name) {
    return model_task(name) != ModelTask::kClassification;
  });
  return names;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModel, RunsOnEveryDataSet) {
  const IdxFolder folder;
  write_test_set(folder);
  TrainConfig config;
  config.model = GetParam();
  config.data_dir = folder.path();
  config.devices = "cpu";
  config.batch_size = kSamples;
  config.max_train_samples = kSamples;
  config.workers = 0;
  OwnParts own;
  for (const std::string data : {"fashion-mnist", "mnist"}) {
    SCOPED_TRACE(data);
    config.data = data;
    const TrainerOptions options{.own = named_parts(config, own)};
    const RunStart start = decide(config, options);
    auto setup = set_up(start, options);
    run_once(setup);
    // Large ones take seconds to make: one is enough.
    own.model = setup.model;
    own.model_name = config.model;
    config.img_size = start.config.img_size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Registry,
    EveryModel,
    ::testing::ValuesIn(classifiers()),
    [](const auto& one) { return one.param; });

} // namespace
} // namespace lockstep::train
