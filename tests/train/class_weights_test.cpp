// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/class_weights.h"

#include <atomic>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/task.h"
#include "tests/support/python.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Classes with names, of which some have more samples.
class Named final : public Dataset {
 public:
  explicit Named(std::vector<std::int64_t> classes)
      : classes_(std::move(classes)) {}

  [[nodiscard]] std::int64_t size() const override {
    return std::ssize(classes_);
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {2};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return 3;
  }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return {"ant", "bee", "cat"};
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> /*images*/,
      TargetRows targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      targets.classes[i] = classes_[static_cast<std::size_t>(indices[i])];
    }
  }

 private:
  std::vector<std::int64_t> classes_;
};

class ClassWeightsTest : public TrainerFixture {
 protected:
  std::string file(std::string_view text) {
    const std::string path = dir_ / "weights.yaml";
    std::ofstream(path) << text;
    return path;
  }
  static Error refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  const Named data_{{0, 0, 1, 2, 0, 2, 0, -100}};
};

TEST_F(ClassWeightsTest, BalancedIsScikitLearns) {
  // compute_class_weight("balanced", classes=[0, 1, 2], y=[0, 0, 1, 2, 0, 2,
  // 0])
  EXPECT_THAT(
      class_weights("balanced", data_, 8),
      ElementsAre(7.0 / 12, 7.0 / 3, 7.0 / 6));
  EXPECT_THAT(class_weights("", data_, 8), ElementsAre());
  const Error error = refused([&] { class_weights("balanced", data_, 2); });
  EXPECT_EQ(error.detail, "E_FLAGS");
  EXPECT_THAT(error.message, HasSubstr("'bee' has no training sample"));
}

TEST_F(ClassWeightsTest, AFileNamesClassesOrCountsThem) {
  const auto resolved = [&](std::string_view text) {
    return resolved_class_weights(file(text), data_, real_fs());
  };
  EXPECT_EQ(resolved("[1, 0.5, 2]"), "1.0,0.5,2.0");
  EXPECT_EQ(resolved("1\n0.5\n2\n"), "1.0,0.5,2.0");
  EXPECT_EQ(resolved("cat: 2\nant: 1\nbee: 0.5\n"), "1.0,0.5,2.0");
  EXPECT_EQ(resolved_class_weights("1,0.5,2", data_, real_fs()), "1.0,0.5,2.0");
  EXPECT_THAT(class_weights("1,0.5,2", data_, 8), ElementsAre(1, 0.5, 2));
  const auto message = [&](std::string_view text) {
    const Error error = refused([&] { resolved(text); });
    EXPECT_EQ(error.detail, "E_CONFIG_FILE");
    EXPECT_THAT(error.path, HasSubstr("weights.yaml"));
    return error.message;
  };
  EXPECT_THAT(message("[1, 2]"), HasSubstr("each of 3 classes, got 2"));
  EXPECT_THAT(message("cot: 2\nant: 1\n"), HasSubstr("did you mean cat"));
  EXPECT_THAT(message("cat: 2\nant: 1\n"), HasSubstr("'bee' has no weight"));
  EXPECT_THAT(message("[1, -1, 2]"), HasSubstr("got '-1'"));
  EXPECT_THAT(message("[1, x, 2]"), HasSubstr("got 'x'"));
  EXPECT_THAT(message("[0, 0, 0]"), HasSubstr("all weights are 0"));
  EXPECT_THAT(message("[1, "), HasSubstr("end of"));
  const Error none =
      refused([&] { resolved_class_weights("balancd", data_, real_fs()); });
  EXPECT_EQ(none.detail, "E_FLAG_VALUE");
  EXPECT_THAT(none.hint, HasSubstr("did you mean balanced"));
}

TEST_F(ClassWeightsTest, TheTestHasNoWeights) {
  const Task task = classification(0.1, {1.0, 5.0, 2.0});
  const at::Tensor outputs = torch::tensor({{2.0F, 0.0F, 1.0F}});
  const at::Tensor targets = torch::tensor({1});
  EXPECT_TRUE(task.test_loss(outputs, targets)
                  .equal(cross_entropy()(outputs, targets)));
  EXPECT_EQ(task.divisor(torch::tensor({1, 0, 1, -100})), 11.0);
  EXPECT_EQ(task.divisor(torch::rand({4, 3})), 4.0) << "shares of classes";
  EXPECT_EQ(classification().divisor(torch::tensor({1, 0, 1, -100})), 3.0);
}

// Copies of one loss, each in a thread of its own.
TEST_F(ClassWeightsTest, ALossOfInferenceTrainsNext) {
  const LossFunction loss = cross_entropy(0.0, -100, {1.0, 5.0, 2.0});
  const at::Tensor outputs = torch::ones({1, 3}).requires_grad_();
  const at::Tensor targets = torch::tensor({1});
  {
    const c10::InferenceMode inference;
    loss(outputs, targets);
  }
  loss(outputs, targets).backward();
  EXPECT_TRUE(outputs.grad().defined());
}

TEST_F(ClassWeightsTest, ThreadsShareALoss) {
  const LossFunction loss = cross_entropy(0.0, -100, {1.0, 5.0, 2.0});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      threads.emplace_back([own = loss, type, &wrong] {
        const at::Tensor outputs =
            torch::tensor({{2.0, 0.0, 1.0}}, at::kDouble).to(type);
        const at::Tensor targets = torch::tensor({1});
        try {
          for (int i = 0; i < 3000; ++i) {
            wrong += own(outputs, targets).scalar_type() == type ? 0 : 1;
          }
        } catch (const std::exception&) {
          ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(ClassWeightsTest, SamplesAreDrawnUntilClassesComeAsOften) {
  const std::vector<double> weights = balanced_sample_weights(data_, 8);
  EXPECT_THAT(weights, ElementsAre(0.25, 0.25, 1.0, 0.5, 0.25, 0.5, 0.25, 0.0));
  const SampleOrderOptions options{.seed = 5, .epoch = 2, .weights = weights};
  const auto all = sample_order(8, options);
  EXPECT_EQ(all.size(), 8U);
  EXPECT_THAT(all, ::testing::Not(Contains(7)));
  // torch.multinomial with a generator of seed 7 is compared by step_hook_test.
  SampleOrderOptions later = options;
  later.consumed = 3;
  const auto rest = sample_order(8, later);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + 3));
  EXPECT_EQ(rest.size(), 5U);
  EXPECT_THROW(sample_order(9, options), Exception);
}

TEST_F(ClassWeightsTest, RanksWeighTheirBatches) {
  TrainConfig wanted = uneven("one");
  wanted.class_weights = "9,1,0.1,1,1,3,1,0.25,1,1";
  wanted.max_train_samples = 256;
  wanted.epochs = 2;
  train(wanted);
  TrainConfig both = wanted;
  both.output = dir_ / "two";
  const std::vector<OwnParts> of_ranks{named_parts(both), named_parts(both)};
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        const auto rank = static_cast<std::size_t>(group.rank());
        Trainer(both, {.group = group, .own = of_ranks[rank]}).run();
      });
  EXPECT_THAT(errors, Each(""));
  const auto weights = [&](const std::string& folder) {
    const ckpt::Value saved = checkpoint(folder);
    return to_state_dict(*saved.find("state_dict"));
  };
  const StateDict one = weights("one");
  const StateDict two = weights("two");
  for (const auto& [name, tensor] : one.entries) {
    EXPECT_TRUE(torch::allclose(tensor, two.get(name), 1e-4, 1e-5)) << name;
  }
}

TEST_F(ClassWeightsTest, OtherWeightsOrSamplersAreTold) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.class_weights = "balanced";
  wanted.sampler = "balanced";
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("both make up for rare classes")));
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  wanted.resume_exact = true;
  TrainConfig other = wanted;
  other.class_weights = "";
  EXPECT_THAT(
      refused([&] { train(other); }).message,
      HasSubstr("class_weights: 'balanced', now ''"));
  other = wanted;
  other.sampler = "shuffle";
  EXPECT_THAT(
      refused([&] { train(other); }).message,
      HasSubstr("sampler: 'balanced', now ''"));
  EXPECT_EQ(train(wanted).epochs, 2);
}

TEST_F(ClassWeightsTest, TasksWithoutClassesRefuseThem) {
  const auto rows = as_dataset(make_dataset(4, [](std::int64_t i) {
    return std::pair(torch::ones({2}), torch::full({1}, static_cast<float>(i)));
  }));
  EXPECT_EQ(
      refused([&] { task_for(*rows, "auto", "auto", 0.0, {1.0}); }).detail,
      "E_FLAGS");
  EXPECT_EQ(
      refused([&] { balanced_sample_weights(*rows, 4); }).detail,
      "E_FLAGS");
}

} // namespace
} // namespace lockstep::train
