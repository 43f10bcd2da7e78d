// SPDX-License-Identifier: BSD-3-Clause
//
// Whatever a program does to parameters and buffers between two forward passes,
// several devices compute what one device computes: every optimizer, with every
// kind of change, over several steps, against the plain module.
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;

// Two linear layers and a buffer that scales what is between them.
struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() {
    reset();
  }
  void reset() override {
    fc1 = register_module("fc1", nn::Linear(6, 5));
    fc2 = register_module("fc2", nn::Linear(5, 3));
    scale = register_buffer("scale", torch::ones({5}));
  }
  Tensor forward(const Tensor& x) {
    return fc2->forward(torch::tanh(fc1->forward(x.to(scale.dtype()))) * scale);
  }
  nn::Linear fc1 = nullptr;
  nn::Linear fc2 = nullptr;
  Tensor scale;
};
TORCH_MODULE(Net);

Net make_net(const torch::Device& device) {
  torch::manual_seed(3);
  Net net;
  net->to(device, torch::kFloat64);
  return net;
}

// A step takes the loss's closure: LBFGS calls it several times.
using Closure = std::function<Tensor()>;
using Step = std::function<void(const Closure&)>;

struct OptimizerCase {
  const char* name = "";
  std::function<Step(std::vector<Tensor>)> make = {};
};

template <class Optimizer, class Options>
Step stock(std::vector<Tensor> parameters, Options options) {
  auto optimizer = std::make_shared<Optimizer>(std::move(parameters), options);
  return [optimizer](const Closure& closure) {
    optimizer->step([&] {
      optimizer->zero_grad();
      return closure();
    });
  };
}

template <class Optimizer, class Options>
Step ours(std::vector<Tensor> parameters, Options options) {
  auto optimizer =
      std::make_shared<Optimizer>(Params(std::move(parameters)), options);
  return [optimizer](const Closure& closure) {
    optimizer->zero_grad();
    closure();
    optimizer->step();
  };
}

using Parameters = std::vector<Tensor>;
namespace optim = torch::optim;

const std::vector<OptimizerCase>& optimizers() {
  static const std::vector<OptimizerCase> cases{
      {"torch SGD",
       [](Parameters p) {
         return stock<optim::SGD>(
             std::move(p),
             optim::SGDOptions(0.1).momentum(0.9));
       }},
      {"torch Adam",
       [](Parameters p) {
         return stock<optim::Adam>(std::move(p), optim::AdamOptions(0.01));
       }},
      {"torch AdamW",
       [](Parameters p) {
         return stock<optim::AdamW>(std::move(p), optim::AdamWOptions(0.01));
       }},
      {"torch Adagrad",
       [](Parameters p) {
         return stock<optim::Adagrad>(
             std::move(p),
             optim::AdagradOptions(0.05));
       }},
      {"torch RMSprop",
       [](Parameters p) {
         return stock<optim::RMSprop>(
             std::move(p),
             optim::RMSpropOptions(0.01));
       }},
      {"torch LBFGS",
       [](Parameters p) {
         return stock<optim::LBFGS>(
             std::move(p),
             optim::LBFGSOptions(0.1).max_iter(3));
       }},
      {"lockstep SGD",
       [](Parameters p) {
         return ours<SGD>(std::move(p), SGDOptions{.lr = 0.1, .momentum = 0.9});
       }},
      {"lockstep Adam",
       [](Parameters p) {
         return ours<Adam>(std::move(p), AdamOptions{.lr = 0.01});
       }},
      {"lockstep AdamW",
       [](Parameters p) {
         return ours<AdamW>(std::move(p), AdamOptions{.lr = 0.01});
       }},
  };
  return cases;
}

// One evaluation, whose result counts.
using Evaluate = std::function<void()>;

// What the program does before step `step`, besides training.
struct Change {
  const char* name = "";
  std::function<void(Net& net, int step, const Evaluate&)> apply = {};
  /// Between backward and the optimizer's step.
  std::function<void(Net& net)> after_backward = {};
};

// Numbers that depend on the tensor's place and the step only.
Tensor numbers_like(const Tensor& tensor, int step) {
  return torch::arange(tensor.numel(), torch::kFloat64)
      .mul(0.37)
      .add(step)
      .sin()
      .mul(0.4)
      .view(tensor.sizes())
      .to(tensor.options());
}

void every_second(int step, const std::function<void()>& change) {
  if (step % 2 == 1) {
    change();
  }
}

void for_each_tensor(Net& net, const std::function<void(Tensor&)>& change) {
  for (Tensor& parameter : net->parameters()) {
    change(parameter);
  }
  for (Tensor& buffer : net->buffers()) {
    change(buffer);
  }
}

void load_archive(Net& net, int step) {
  Net other;
  other->to(torch::kFloat64);
  {
    const torch::NoGradGuard no_grad;
    for_each_tensor(other, [step](Tensor& t) {
      t.copy_(numbers_like(t, step));
    });
  }
  std::stringstream stream;
  torch::save(other, stream);
  torch::load(net, stream, net->fc1->weight.device());
}

void write_bytes(Tensor& tensor, int step) {
  // Through a pointer: nothing that LibTorch could notice. Memory of simulated
  // devices is the host's.
  const Tensor values = numbers_like(tensor.cpu(), step);
  std::memcpy(tensor.data_ptr(), values.data_ptr(), values.nbytes());
}

const std::vector<Change>& changes() {
  static const std::vector<Change> cases{
      {"Plain", [](Net&, int, const Evaluate&) {}},
      {"ClipGradNorm",
       [](Net&, int, const Evaluate&) {},
       [](Net& net) { nn::utils::clip_grad_norm_(net->parameters(), 0.05); }},
      {"DataMul",
       [](Net& net, int step, const Evaluate&) {
         every_second(step, [&] {
           for_each_tensor(net, [](Tensor& t) { t.data().mul_(0.8); });
         });
       }},
      {"SetData",
       [](Net& net, int step, const Evaluate&) {
         every_second(step, [&] {
           for_each_tensor(net, [step](Tensor& t) {
             t.set_data(numbers_like(t, step));
           });
         });
       }},
      {"CopyUnderNoGrad",
       [](Net& net, int step, const Evaluate&) {
         const torch::NoGradGuard no_grad;
         every_second(step, [&] {
           for_each_tensor(net, [step](Tensor& t) {
             t.copy_(numbers_like(t, step));
           });
         });
       }},
      {"LoadStateDict",
       [](Net& net, int step, const Evaluate&) {
         every_second(step, [&] {
           StateDict weights = state_dict(*net);
           for (auto& [key, tensor] : weights.entries) {
             tensor = numbers_like(tensor, step);
           }
           load_state_dict(*net, weights);
         });
       }},
      {"TorchLoad",
       [](Net& net, int step, const Evaluate&) {
         every_second(step, [&] { load_archive(net, step); });
       }},
      {"FreezeAndUnfreeze",
       [](Net& net, int step, const Evaluate&) {
         net->fc1->weight.set_requires_grad(step % 3 != 1);
         net->fc2->bias.set_requires_grad(step % 3 != 2);
       }},
      {"ToDtype",
       [](Net& net, int step, const Evaluate&) {
         net->to(step % 2 == 1 ? torch::kFloat32 : torch::kFloat64);
       }},
      {"DataPointer",
       [](Net& net, int step, const Evaluate&) {
         every_second(step, [&] {
           for_each_tensor(net, [step](Tensor& t) { write_bytes(t, step); });
         });
       }},
      {"SwapsAverageInAndOut",
       [](Net& net, int step, const Evaluate& evaluate) {
         // Another set of weights for one evaluation, without a backward.
         std::vector<Tensor> own;
         for (Tensor& parameter : net->parameters()) {
           own.push_back(parameter.data());
           parameter.set_data(numbers_like(parameter, step));
         }
         evaluate();
         std::size_t place = 0;
         for (Tensor& parameter : net->parameters()) {
           parameter.set_data(own[place++]);
         }
       }},
      {"BufferOnly",
       [](Net& net, int step, const Evaluate&) {
         net->scale.data().fill_(1.0 + 0.1 * step);
       }},
  };
  return cases;
}

Tensor loss_of(const Tensor& output, const Tensor& target) {
  return torch::mse_loss(output, target.to(output.options()));
}

using Forward = std::function<Tensor(const Tensor&)>;

// Six steps; the losses, those of an evaluation between the steps too, then all
// parameters and buffers.
std::vector<double> train(
    Net& net,
    const Forward& forward,
    const Step& step,
    const Change& change) {
  std::vector<double> numbers;
  torch::manual_seed(11);
  for (int i = 0; i < 6; ++i) {
    const auto device = net->scale.device();
    const Tensor x = torch::randn({7, 6}, torch::kFloat64).to(device);
    const Tensor y = torch::randn({7, 3}, torch::kFloat64).to(device);
    const auto evaluate = [&] {
      const torch::NoGradGuard no_grad;
      numbers.push_back(loss_of(forward(x), y).item<double>());
    };
    change.apply(net, i, evaluate);
    step([&] {
      Tensor loss = loss_of(forward(x), y);
      loss.backward();
      if (change.after_backward) {
        change.after_backward(net);
      }
      numbers.push_back(loss.item<double>());
      return loss;
    });
    evaluate();
  }
  for_each_tensor(net, [&numbers](Tensor& t) {
    numbers.push_back(t.sum().item<double>());
  });
  return numbers;
}

void expect_near(
    const std::vector<double>& got,
    const std::vector<double>& expected,
    double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << "number " << i;
  }
}

bool goes_with(const OptimizerCase& optimizer, const Change& change) {
  // LibTorch's and our optimizers keep their state in the dtype of the first
  // step; LBFGS wants one gradient from all parameters.
  const std::string name = change.name;
  const bool is_plain_sgd = std::string(optimizer.name) == "torch SGD";
  const bool is_lbfgs = std::string(optimizer.name) == "torch LBFGS";
  return name == "ToDtype" ? is_plain_sgd
                           : !(name == "FreezeAndUnfreeze" && is_lbfgs);
}

class EveryChange
    : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(EveryChange, IsFollowedByAllReplicas) {
  const auto& [devices, number] = GetParam();
  const Change& change = changes()[number];
  for (const OptimizerCase& optimizer : optimizers()) {
    if (!goes_with(optimizer, change)) {
      continue;
    }
    SCOPED_TRACE(optimizer.name);
    Net alone = make_net(torch::kCPU);
    const auto expected = train(
        alone,
        [&](const Tensor& x) { return alone->forward(x); },
        optimizer.make(alone->parameters()),
        change);
    Net net = make_net(parse_devices(devices).front());
    DataParallel model(net, {.devices = devices});
    const auto got = train(
        net,
        [&](const Tensor& x) { return model->forward(x); },
        optimizer.make(model->parameters()),
        change);
    // Sums of float64 gradients in another order; ToDtype computes in float32.
    expect_near(
        got,
        expected,
        std::string(change.name) == "ToDtype" ? 1e-4 : 1e-8);
  }
}

INSTANTIATE_TEST_SUITE_P(
    On,
    EveryChange,
    testing::Combine(
        testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
        testing::Range(std::size_t{0}, changes().size())),
    [](const auto& param) {
      return test::name_of_devices(std::get<0>(param.param)) +
             changes()[std::get<1>(param.param)].name;
    });

} // namespace
} // namespace lockstep
