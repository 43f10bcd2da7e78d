// SPDX-License-Identifier: BSD-3-Clause
//
// Batches as loaders give them, and classes of the user's, as arguments of
// forward: what holds tensors is split, what has the word goes as it is, and
// anything else does not compile (tests/compile_fail).
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/data/dataset.h"
#include "lockstep/parallel/data_parallel.h"

namespace user {

/// Holds a tensor that is no batch.
struct Prior {
  torch::Tensor scale;
};
/// Nobody has said anything about it.
struct Unknown {
  int shift = 0;
};

} // namespace user

template <>
struct lockstep::Structure<user::Prior> : lockstep::AsIs {};

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Example = torch::data::Example<>;
using Images = torch::data::Example<at::Tensor, void>;
using Either = std::variant<at::Tensor, std::vector<at::Tensor>>;
using ::testing::ElementsAre;

// Each forward returns what it saw: one row of numbers a replica.
struct SeesImpl : nn::Cloneable<SeesImpl> {
  void reset() override {}
  at::Tensor forward(const Batch& batch) {
    return torch::tensor({{batch.images.size(0), batch.targets.size(0)}});
  }
  at::Tensor forward(const Example& batch) {
    return torch::tensor({{batch.data.size(0), batch.target.size(0)}});
  }
  at::Tensor forward(const Images& batch) {
    return torch::tensor({{batch.data.size(0)}});
  }
  at::Tensor forward(const at::Tensor& x, const user::Prior& prior) {
    return torch::tensor({{x.size(0), prior.scale.size(0)}});
  }
  at::Tensor forward(const at::Tensor& x, const user::Unknown& unknown) {
    return torch::tensor({{x.size(0), std::int64_t{unknown.shift}}});
  }
  at::Tensor forward(
      const at::Tensor& x,
      const std::function<std::int64_t(std::int64_t)>& function) {
    return torch::tensor({{x.size(0), function(x.size(0))}});
  }
  // Known by themselves: texts, times, LibTorch's small values.
  at::Tensor forward(
      const at::Tensor& x,
      const std::string& text,
      std::chrono::milliseconds time,
      const at::Scalar& scalar,
      torch::Device device,
      const torch::TensorOptions& options) {
    return torch::tensor(
        {{x.size(0),
          static_cast<std::int64_t>(text.size()),
          time.count(),
          scalar.toLong(),
          std::int64_t{device.is_cpu()},
          std::int64_t{options.dtype() == torch::kLong}}});
  }
};
TORCH_MODULE(Sees);

class Structs : public testing::Test {
 protected:
  // What the replicas of sim*2 saw of `args`.
  template <class... Args>
  std::vector<std::int64_t> seen(Args&&... args) {
    const auto flat =
        model_->forward(std::forward<Args>(args)...).to("cpu").flatten();
    return {
        flat.template data_ptr<std::int64_t>(),
        flat.template data_ptr<std::int64_t>() + flat.numel()};
  }

  at::Tensor images_ = torch::randn({6, 3});
  at::Tensor targets_ = torch::arange(6);
  DataParallel<SeesImpl> model_{Sees(), {.devices = "sim*2"}};
};

TEST_F(Structs, OurBatchIsSplit) {
  EXPECT_THAT(
      seen(Batch{.images = images_, .targets = targets_}),
      ElementsAre(3, 3, 3, 3));
}

TEST_F(Structs, TheStockLoadersBatchIsSplit) {
  EXPECT_THAT(seen(Example(images_, targets_)), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(seen(Images(images_)), ElementsAre(3, 3));
}

TEST_F(Structs, AMarkedTypeGoesAsItIs) {
  EXPECT_THAT(
      seen(images_, user::Prior{torch::ones({7})}),
      ElementsAre(3, 7, 3, 7));
}

TEST_F(Structs, AMarkedArgumentGoesAsItIs) {
  EXPECT_THAT(
      seen(images_, as_is(user::Unknown{.shift = 5})),
      ElementsAre(3, 5, 3, 5));
  const std::int64_t factor = 2;
  const std::function<std::int64_t(std::int64_t)> twice =
      [factor](std::int64_t n) { return factor * n; };
  EXPECT_THAT(seen(images_, as_is(twice)), ElementsAre(3, 6, 3, 6));
}

TEST_F(Structs, PlainValuesNeedNoWord) {
  EXPECT_THAT(
      seen(
          images_,
          "text",
          std::chrono::milliseconds(5),
          at::Scalar(6),
          torch::Device("cpu"),
          torch::TensorOptions(torch::kLong)),
      ElementsAre(3, 4, 5, 6, 1, 1, 3, 4, 5, 6, 1, 1));
}

struct TwiceImpl : nn::Cloneable<TwiceImpl> {
  void reset() override {}
  static std::list<at::Tensor> forward(const c10::List<at::Tensor>& list) {
    return {list.get(0) * 2, list.get(1) * 2};
  }
  static Either forward(const Either& either) {
    return std::visit([](const auto& held) { return twice(held); }, either);
  }

 private:
  static Either twice(const at::Tensor& x) {
    return x * 2;
  }
  static Either twice(const std::vector<at::Tensor>& list) {
    return std::vector<at::Tensor>{list.at(0) * 2, list.at(1) * 2};
  }
};
TORCH_MODULE(Twice);

TEST(MoreContainers, AreSplitAndJoined) {
  DataParallel model(Twice(), {.devices = "cpu*2"});
  const auto x = torch::randn({5, 2});
  const c10::List<at::Tensor> list({x, x + 1});
  const std::list<at::Tensor> twice = model->forward(list);
  EXPECT_TRUE(torch::equal(twice.front(), x * 2));
  EXPECT_TRUE(torch::equal(twice.back(), (x + 1) * 2));
  EXPECT_TRUE(list.get(0).is_same(x)) << "the caller's list was changed";
  EXPECT_TRUE(
      torch::equal(std::get<at::Tensor>(model->forward(Either(x))), x * 2));
  const Either both = std::vector<at::Tensor>{x, x + 1};
  EXPECT_TRUE(torch::equal(
      std::get<std::vector<at::Tensor>>(model->forward(both)).at(1),
      (x + 1) * 2));
}

} // namespace
} // namespace lockstep
