// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a job, with parts that users have: LibTorch's layers, loss and
// SGD. tests/oracle/dist_rank.py is the same program in Python; ranks_test.py
// starts both, mixed in every way, and compares what they save. The scenarios
// are models that one group trains one after another.
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=... dist_rank FOLDER BACKEND SCENARIO...
// BACKEND: gloo, shm, or mixed, which is gloo with ranks of Python.
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/comm_hook.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/distributed/zero_redundancy_optimizer.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace {

namespace ls = lockstep;
namespace dist = lockstep::dist;

/// Two convolutions with BatchNorm, and two heads of which one may stay unused.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv1 = register_module(
        "conv1",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(4));
    conv2 = register_module(
        "conv2",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 8, 3).padding(1)));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(8));
    head1 = register_module("head1", torch::nn::Linear(8, 10));
    head2 = register_module("head2", torch::nn::Linear(8, 10));
  }

  at::Tensor forward(const at::Tensor& images, bool both_heads) {
    at::Tensor x = torch::relu(bn1->forward(conv1->forward(images)));
    x = torch::relu(bn2->forward(conv2->forward(x)));
    x = x.mean({2, 3});
    // In Python's order: the order of gradients decides what buckets hold.
    const at::Tensor first = head1->forward(x);
    return both_heads ? first + head2->forward(x) : first;
  }

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::BatchNorm2d bn2{nullptr};
  torch::nn::Linear head1{nullptr};
  torch::nn::Linear head2{nullptr};
};
TORCH_MODULE(Net);

ls::DistributedDataParallelOptions options_of(const std::string& scenario) {
  ls::DistributedDataParallelOptions options;
  options.gradient_as_bucket_view = scenario == "views";
  options.find_unused_parameters = scenario == "unused";
  options.static_graph = scenario == "static";
  if (scenario == "small_buckets") {
    options.bucket_cap_mb = 0.0005;
  }
  return options;
}

/// The hooks of Python's side.
template <class Model>
void register_hook(Model& model, const std::string& scenario) {
  if (scenario == "fp16") {
    model->register_comm_hook(dist::fp16_compress_hook());
  } else if (scenario == "bf16") {
    model->register_comm_hook(dist::bf16_compress_hook());
  } else if (scenario.starts_with("power_sgd")) {
    // With more than two columns LibTorch's QR makes them orthogonal.
    model->register_comm_hook(dist::power_sgd_hook(
        std::make_shared<dist::PowerSGDState>(dist::PowerSGDOptions{
            .matrix_approximation_rank = scenario.ends_with("qr") ? 3 : 2,
            .start_power_sgd_iter = 3,
            .min_compression_rate = 1.1})));
  }
}

/// One step of `model` on this rank's next batch.
template <class Model>
void backward(Model& model, const std::string& scenario, int step) {
  const at::Tensor images = torch::randn({6, 1, 8, 8});
  const at::Tensor targets = torch::randint(10, {6});
  const bool both_heads = scenario != "unused" || step % 2 == 0;
  const at::Tensor outputs = model->forward(images, both_heads);
  torch::nn::functional::cross_entropy(outputs, targets).backward();
}

/// One of LibTorch's or of ours.
struct AnyOptimizer {
  std::function<void()> zero_grad = {};
  std::function<void()> step = {};
  /// Brings the whole state to rank 0, where it is saved.
  std::function<void(const std::string& file)> save = [](const auto&) {};
};

AnyOptimizer make_optimizer(
    const std::string& scenario,
    const std::vector<at::Tensor>& parameters) {
  const auto of = [](auto optimizer) {
    return AnyOptimizer{
        .zero_grad = [optimizer] { optimizer->zero_grad(); },
        .step = [optimizer] { optimizer->step(); }};
  };
  if (scenario == "adamw") {
    return of(
        std::make_shared<ls::AdamW>(parameters, ls::AdamOptions{.lr = 0.01}));
  }
  if (scenario != "zero") {
    return of(std::make_shared<torch::optim::SGD>(
        parameters,
        torch::optim::SGDOptions(0.1).momentum(0.9)));
  }
  auto zero = std::make_shared<ls::ZeroRedundancyOptimizer>(
      parameters,
      [](ls::Params part) {
        return std::make_unique<ls::AdamW>(
            std::move(part),
            ls::AdamOptions{.lr = 0.01});
      });
  AnyOptimizer optimizer = of(zero);
  optimizer.save = [zero](const std::string& file) {
    zero->consolidate_state_dict();
    if (dist::get_rank() == 0) {
      ls::save(zero->state_dict(), file);
    }
  };
  return optimizer;
}

template <class Model>
AnyOptimizer train(Model& model, const std::string& scenario, int steps) {
  AnyOptimizer optimizer = make_optimizer(scenario, model->parameters());
  torch::manual_seed(100 + dist::get_rank());
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    if (scenario == "no_sync") {
      const auto no_sync = model->no_sync();
      backward(model, scenario, step);
    }
    backward(model, scenario, step);
    if (scenario == "evaluation" && step % 5 == 4) {
      const torch::NoGradGuard no_grad;
      model->forward(torch::randn({6, 1, 8, 8}), true);
    }
    optimizer.step();
  }
  return optimizer;
}

void expect(bool is_so, const char* what) {
  if (!is_so) {
    throw std::runtime_error(what);
  }
}

/// Tensors that lie in columns: all ranks reduce and broadcast them as they
/// lie, and letters come in order.
void check_strides(const dist::ProcessGroup& group) {
  const at::Tensor numbers = torch::arange(6.0).view({2, 3});
  const auto by_columns = [](const at::Tensor& tensor) {
    return tensor.t().contiguous().t();
  };
  at::Tensor sum = by_columns(numbers);
  group.all_reduce(sum);
  expect(torch::equal(sum, group.size() * numbers), "a sum of columns");
  at::Tensor given = by_columns(group.rank() * numbers);
  group.broadcast(given, 1);
  expect(torch::equal(given, numbers), "columns of another rank");
  if (group.rank() == 0) {
    group.send(by_columns(numbers), 1);
  } else if (group.rank() == 1) {
    at::Tensor letter = by_columns(torch::zeros({2, 3}));
    group.recv(letter, 0);
    expect(torch::equal(letter, numbers), "a letter of columns");
  }
}

/// Complex numbers, by all that carries them in Python.
void check_complex(const dist::ProcessGroup& group) {
  for (const auto type : {at::kComplexFloat, at::kComplexDouble}) {
    const auto numbers = [type](int place) {
      return torch::complex(torch::arange(3.0), torch::full({3}, place + 0.5))
          .to(type);
    };
    // Of one number of each rank.
    const auto total = [&](int place) {
      at::Tensor sum = torch::zeros({3}, type);
      for (int rank = 0; rank < group.size(); ++rank) {
        sum += numbers(place + rank);
      }
      return sum;
    };
    std::vector<at::Tensor> all;
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < group.size(); ++rank) {
      all.push_back(numbers(rank));
      parts.push_back(numbers(group.rank() + rank));
    }
    at::Tensor sum = numbers(group.rank());
    group.all_reduce(sum);
    expect(torch::equal(sum, total(0)), "a complex sum");
    at::Tensor given = numbers(group.rank());
    group.broadcast(given, 1);
    expect(torch::equal(given, numbers(1)), "complex numbers of one");
    const auto gathered = group.all_gather(numbers(group.rank()));
    expect(torch::equal(gathered[1], numbers(1)), "complex numbers of all");
    at::Tensor part = torch::zeros({3}, type);
    group.scatter(part, group.rank() == 1 ? all : std::vector<at::Tensor>(), 1);
    expect(torch::equal(part, numbers(group.rank())), "a complex part");
    expect(
        torch::equal(group.reduce_scatter(parts), total(group.rank())),
        "a part of a complex sum");
    if (group.rank() == 0) {
      group.send(numbers(7), 1);
    } else if (group.rank() == 1) {
      group.recv(given, 0);
      expect(torch::equal(given, numbers(7)), "a complex letter");
    }
  }
}

/// A group of two, and values from all, with whoever the others are.
void check_groups(const dist::ProcessGroup& group) {
  using Value = ls::ckpt::Value;
  const dist::ProcessGroup pair = group.new_group({1, 0});
  if (pair) {
    at::Tensor total = torch::full({1}, group.rank() + 1.0);
    pair.all_reduce(total);
    expect(total.item<double>() == 3.0, "the sum in a group of two");
  }
  const auto text = std::string(static_cast<std::size_t>(group.rank()), 'x');
  const Value own = Value::dict({{"rank", group.rank()}, {"text", text}});
  const auto has_rank = [](const Value& value, std::int64_t rank) {
    return *value.find("rank")->as_int() == rank &&
           value.find("text")->as_string()->size() ==
               static_cast<std::size_t>(rank);
  };
  const auto all = dist::all_gather_object(group, own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    expect(
        has_rank(all[rank], static_cast<std::int64_t>(rank)),
        "values of all");
  }
  expect(has_rank(dist::broadcast_object(group, own, 1), 1), "a value of one");
  expect(
      dist::gather_object(group, own, 1).size() ==
          (group.rank() == 1 ? all.size() : 0),
      "values on one");
  check_strides(group);
  check_complex(group);
}

/// Trains a model as `scenario` says, and saves it in `folder`.
void run(const std::string& scenario, const std::string& folder, bool mixed) {
  if (scenario == "groups") {
    check_groups(dist::default_group());
  }
  torch::manual_seed(dist::get_rank()); // rank 0's weights are all ranks'
  Net net;
  ls::DistributedDataParallel model(net, options_of(scenario));
  register_hook(model, scenario);
  if (scenario.starts_with("join")) {
    model->join(
        [&] { train(model, scenario, 8 + 6 * dist::get_rank()); },
        {.divide_by_initial_world_size = scenario == "join"});
  } else {
    const AnyOptimizer optimizer = train(model, scenario, 20);
    if (!mixed) { // Python's ranks bring it together in their own way
      optimizer.save(ls::format("{}/{}_optimizer.pt", folder, scenario));
    }
  }
  ls::save(
      ls::state_dict(*model),
      ls::format("{}/{}_{}.pt", folder, scenario, dist::get_rank()));
}

} // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool mixed = arguments.at(1) == "mixed";
  torch::set_num_threads(1);
  dist::init_process_group(
      {.backend = mixed ? "gloo" : arguments.at(1), .has_python_ranks = mixed});
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    run(arguments[i], arguments[0], mixed);
  }
  dist::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
