// SPDX-License-Identifier: BSD-3-Clause
//
// The usual combinations: models saved on one GPU or many, as weights or
// whole, come out as the state_dict that PyTorch itself would have saved, on a
// machine without those GPUs and without the model's class.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

struct Way {
  bool unwrap = false;
  std::string expected = {};
};

std::vector<std::string> cases_in(const test::ScratchDir& folder) {
  return test::python_lines("ckpt_whole_models.py", {"make", folder.path()});
}

TEST(ExtractedModelsOracle, EqualTheStateDictOfPyTorch) {
  const test::ScratchDir folder;
  const auto names = cases_in(folder);
  ASSERT_EQ(names.size(), 25U);
  std::vector<std::string> pairs{"check"};
  std::string all_same;
  for (const std::string& name : names) {
    const auto file = load(folder / (name + ".pt"));
    ASSERT_TRUE(file) << name << ": " << to_string(file.error());
    for (const auto& storage : file->storages) {
      EXPECT_EQ(storage->location, "cuda:7") << name;
      storage->location = "cpu"; // --map-location cpu
    }
    for (const Way& way : {Way{false, ".keep"}, Way{true, ".bare"}}) {
      const auto model = extract_model(file->root, {.unwrap = way.unwrap});
      ASSERT_TRUE(model) << name << ": " << to_string(model.error());
      const std::string expected = folder / (name + way.expected);
      ASSERT_TRUE(save(expected + ".ours", model->state_dict)) << name;
      pairs.insert(pairs.end(), {expected + ".ours", expected});
      all_same += "same\n";
    }
  }
  EXPECT_EQ(test::run_python("ckpt_whole_models.py", pairs), all_same);
}

std::string unread_in(const ExtractedModel& model) {
  std::vector<std::string> names;
  for (const UnreadModule& child : model.unread) {
    names.push_back(child.name);
  }
  return join(names, ",");
}

// What Python's state_dict has is there, or named as what cannot be read.
TEST(ExtractedModelsOracle, AreFoundInWhatHoldsThemWithAllTheirLayers) {
  const test::ScratchDir folder;
  const auto lines =
      test::python_lines("ckpt_whole_models.py", {"layers", folder.path()});
  ASSERT_EQ(lines.size(), 22U);
  std::vector<std::string> pairs{"check"};
  std::string all_same;
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    SCOPED_TRACE(name);
    const auto file = load(folder / (name + ".pt"));
    ASSERT_TRUE(file) << to_string(file.error());
    const auto model = extract_model(file->root);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(
        unread_in(*model),
        space == std::string::npos ? "" : line.substr(space + 1));
    const std::string ours = folder / (name + ".ours");
    const Status saved = save(ours, model->state_dict);
    ASSERT_TRUE(saved) << to_string(saved.error());
    pairs.insert(pairs.end(), {ours, folder / (name + ".keep")});
    all_same += "same\n";
  }
  EXPECT_EQ(test::run_python("ckpt_whole_models.py", pairs), all_same);
}

TEST(ExtractedModelsOracle, SayWhichGpusTheirWrappersWanted) {
  const test::ScratchDir folder;
  cases_in(folder);
  const auto parallel = load(folder / "zip_data_parallel.pt");
  ASSERT_TRUE(parallel);
  EXPECT_EQ(
      to_text(module_facts(parallel->root)),
      "__main__.Net in torch.nn.parallel.data_parallel.DataParallel, "
      "device_ids [0, 1, 3], output_device 0");
  const auto spread = load(folder / "legacy_distributed.pt");
  ASSERT_TRUE(spread);
  EXPECT_EQ(
      to_text(module_facts(spread->root)),
      "__main__.Net in torch.nn.parallel.distributed.DistributedDataParallel, "
      "device_ids [2], output_device 2");
}

} // namespace
} // namespace lockstep::ckpt
