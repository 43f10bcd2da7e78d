// SPDX-License-Identifier: BSD-3-Clause
//
// Every module of torch::nn inside a user's net, on several devices against
// one. What is compared stands in docs/stock_modules.md.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h" // class_name
#include "tests/user/programs.h"
#include "tests/user/stock_rows.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::Against;
using test::StockRow;
using test::StockRows;
using test::Tensors;
using torch::Tensor;

// Rows of their own for each module, as they are given tensors.
StockRows all_rows() {
  torch::manual_seed(3);
  StockRows rows;
  test::add_stock_layers(rows);
  test::add_stock_networks(rows);
  test::add_stock_losses(rows);
  return rows;
}

// A user's net, which makes its layer where LibTorch says it has to.
struct StockNetImpl : nn::Cloneable<StockNetImpl> {
  explicit StockNetImpl(StockRow row_) : row(std::move(row_)) {
    torch::manual_seed(7);
    reset();
  }
  void reset() override {
    layer = register_module("layer", row.make());
  }
  Tensors forward(const Tensors& in) {
    return row.call(*layer, in);
  }
  StockRow row;
  std::shared_ptr<nn::Module> layer = nullptr;
};

std::shared_ptr<StockNetImpl> net_of(
    const StockRow& row,
    const torch::Device& device) {
  auto net = std::make_shared<StockNetImpl>(row);
  net->to(device);
  return net;
}

Tensor dense(const Tensor& tensor) {
  const Tensor known = tensor.detach().cpu();
  return known.is_sparse() ? known.to_dense() : known.clone();
}

// What a pass leaves; the same places in any run of a row.
struct Seen {
  Tensors outputs = {};
  Tensors inputs = {};
  Tensors parameters = {};
  Tensors gradients = {};
  Tensors buffers = {};
};

Tensors gradients_of(const Tensors& leaves) {
  Tensors gradients;
  for (const Tensor& leaf : leaves) {
    gradients.push_back(leaf.grad().defined() ? dense(leaf.grad()) : Tensor());
  }
  return gradients;
}

Tensors inputs_of(const StockRow& row, const torch::Device& device) {
  Tensors inputs;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    inputs.push_back(row.inputs[i].detach().clone().to(device));
    inputs.back().set_requires_grad(i < row.traits.with_gradient);
  }
  return inputs;
}

Tensor weights_of(const Tensor& output) {
  return torch::linspace(0.5, 1.5, output.numel(), output.device())
      .view(output.sizes());
}

// Different weights for all elements of what forward returned.
void run_backward(const Tensors& outputs) {
  Tensor sum;
  for (const Tensor& output : outputs) {
    if (output.requires_grad()) {
      const Tensor part = (output * weights_of(output)).sum();
      sum = sum.defined() ? sum + part : part;
    }
  }
  if (sum.defined()) {
    sum.backward();
  }
}

using Forward = std::function<Tensors(const Tensors&)>;

Seen run(
    const StockRow& row,
    const Forward& forward,
    const StockNetImpl& net,
    const torch::Device& device) {
  Seen seen;
  const Tensors inputs = inputs_of(row, device);
  const Tensors outputs = forward(inputs);
  run_backward(outputs);
  for (const Tensor& output : outputs) {
    seen.outputs.push_back(dense(output));
  }
  seen.inputs = gradients_of(inputs);
  seen.gradients = gradients_of(net.parameters());
  for (const Tensor& parameter : net.parameters()) {
    seen.parameters.push_back(dense(parameter));
  }
  for (const Tensor& buffer : net.buffers()) {
    seen.buffers.push_back(dense(buffer));
  }
  return seen;
}

void step(nn::Module& net) {
  const torch::NoGradGuard no_grad;
  for (Tensor parameter : net.parameters()) {
    if (parameter.grad().defined()) {
      parameter.add_(parameter.grad(), -0.1);
    }
  }
  net.zero_grad();
}

void expect_equal(const char* what, const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool is_same =
        got[i].defined() == want[i].defined() &&
        (!got[i].defined() || (got[i].sizes() == want[i].sizes() &&
                               torch::allclose(got[i], want[i], 1e-4, 1e-5)));
    EXPECT_TRUE(is_same) << what << " " << i << "\n" << got[i] << want[i];
  }
}

void expect_equal(const Seen& got, const Seen& want) {
  expect_equal("output", got.outputs, want.outputs);
  expect_equal("gradient of input", got.inputs, want.inputs);
  expect_equal("gradient of parameter", got.gradients, want.gradients);
  expect_equal("parameter", got.parameters, want.parameters);
  expect_equal("buffer", got.buffers, want.buffers);
}

// One device, one shard after the other: gradients add up, buffers are those of
// the first.
Tensors forward_by_shards(StockNetImpl& net, const Tensors& inputs) {
  const std::int64_t dim = net.row.traits.dim;
  std::vector<Tensors> parts(2);
  for (const Tensor& input : inputs) {
    const auto shards = input.chunk(2, dim);
    parts[0].push_back(shards.at(0));
    parts[1].push_back(shards.at(1));
  }
  const Tensors first = net.forward(parts[0]);
  Tensors kept;
  for (const Tensor& buffer : net.buffers()) {
    kept.push_back(buffer.clone());
  }
  const Tensors second = net.forward(parts[1]);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    net.buffers()[i].data().copy_(kept[i]);
  }
  Tensors joined;
  for (std::size_t i = 0; i < first.size(); ++i) {
    joined.push_back(torch::cat({first[i], second[i]}, dim));
  }
  return joined;
}

// What wrapping must leave as it is.
struct State {
  explicit State(const nn::Module& module) {
    for (const auto& tensors :
         {module.named_parameters(), module.named_buffers()}) {
      for (const auto& item : tensors) {
        const Tensor& t = item.value();
        std::ostringstream text;
        text << item.key() << " " << t.unsafeGetTensorImpl() << " "
             << t.const_data_ptr() << " " << t._version() << " "
             << t.requires_grad() << " " << t.device() << " " << t.sizes();
        texts.push_back(text.str());
        values.push_back(t.detach().clone());
      }
    }
    for (const auto& item : module.named_modules("", /*include_self=*/false)) {
      std::ostringstream text;
      text << item.key() << " " << item.value().get() << " "
           << item.value()->is_training();
      texts.push_back(text.str());
    }
  }
  std::vector<std::string> texts = {};
  Tensors values = {};
};

void expect_unchanged(const State& before, const nn::Module& module) {
  const State after(module);
  EXPECT_EQ(after.texts, before.texts);
  for (std::size_t i = 0; i < before.values.size(); ++i) {
    EXPECT_TRUE(test::same_bits(after.values[i], before.values[i]));
  }
}

void expect_own_tensors(const nn::Module& module, const nn::Module& replica) {
  for (const Tensor& mine : replica.parameters()) {
    for (const Tensor& theirs : module.parameters()) {
      EXPECT_FALSE(mine.is_same(theirs));
    }
  }
  for (const Tensor& mine : replica.buffers()) {
    for (const Tensor& theirs : module.buffers()) {
      EXPECT_FALSE(mine.is_alias_of(theirs));
    }
  }
}

// Training that draws random numbers: what holds whatever they are.
void expect_random(const StockRow& row, const Seen& seen) {
  const Tensor& gradient = seen.inputs.front();
  const Tensor& output = seen.outputs.front();
  if (row.traits.against == Against::kTwoValues) {
    const auto values =
        std::get<0>(torch::_unique(gradient.div(weights_of(output))));
    EXPECT_EQ((values.diff() > 1e-4).sum().item<int>(), 1) << values;
    return;
  }
  EXPECT_TRUE(torch::allclose(
      (gradient * row.inputs.front()).sum(),
      (output * weights_of(output)).sum(),
      1e-4,
      1e-4));
  EXPECT_FALSE(torch::equal(output, row.inputs.front()));
}

void compare(const StockRow& row, const StockRow& alone, const char* devices) {
  const auto home = parse_devices(devices).front();
  const auto net = net_of(row, home);
  const auto one = net_of(alone, home);
  const State before(*net);
  EXPECT_THAT(copy_of(*net->layer).borrowed, testing::IsEmpty());
  DataParallel model(net, {.devices = devices, .dim = row.traits.dim});
  expect_unchanged(before, *net);
  expect_own_tensors(*net, model->group().replica(1));
  const auto through = [&](const Tensors& in) { return model->forward(in); };
  const bool is_random = row.traits.against != Against::kWhole &&
                         row.traits.against != Against::kShards;
  if (is_random) {
    expect_random(row, run(row, through, *net, home));
    if (row.traits.against == Against::kScaledAlways) {
      return;
    }
    net->eval();
    one->eval();
  }
  for (int pass = 0; pass < 2; ++pass) {
    const Seen want = run(
        alone,
        [&](const Tensors& in) {
          return row.traits.against == Against::kShards
                     ? forward_by_shards(*one, in)
                     : one->forward(in);
        },
        *one,
        home);
    expect_equal(run(row, through, *net, home), want);
    step(*net);
    step(*one);
  }
}

std::string label_of(const StockRow& row) {
  const std::string name = class_name(*row.make());
  const std::string& variant = row.traits.variant;
  return variant.empty() ? name : format("{} ({})", name, variant);
}

class StockModules : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    StockModules,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(StockModules, DoOnSeveralDevicesWhatTheyDoOnOne) {
  test::Warnings quiet; // the transformers warn of their own
  const StockRows rows = all_rows();
  const StockRows others = all_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].traits.is_cpu_only && GetParam() != std::string("cpu*2")) {
      continue;
    }
    SCOPED_TRACE(label_of(rows[i]));
    EXPECT_NO_THROW(compare(rows[i], others[i], GetParam()));
  }
}

// LibTorch's headers stand beside its libraries.
std::filesystem::path headers_of_modules() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line) && !line.ends_with("/libtorch_cpu.so")) {
  }
  const std::filesystem::path library = line.substr(line.find('/'));
  return library.parent_path().parent_path() /
         "include/torch/csrc/api/include/torch/nn/modules";
}

std::set<std::string> modules_of_libtorch() {
  const std::regex holder(
      R"(^ *(?:TORCH_MODULE\((\w+)\);|class (\w+) : public torch::nn::ModuleHolder<))");
  std::set<std::string> names;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(headers_of_modules())) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (std::regex_search(line, found, holder)) {
        names.insert(found[1].matched ? found[1] : found[2]);
      }
    }
  }
  return names;
}

TEST(StockModuleRows, NameEveryModuleInLibTorchsHeaders) {
  std::set<std::string> ours;
  for (const StockRow& row : all_rows()) {
    ours.insert(class_name(*row.make()));
  }
  EXPECT_EQ(ours, modules_of_libtorch());
}

std::string line_of(const StockRow& row) {
  const std::array texts{
      "one device",
      "one device, shard by shard",
      "in training: gradient times input is the output; in evaluation: one "
      "device",
      "gradient times input is the output",
      "in training: two values of the gradient; in evaluation: one device"};
  const auto module = row.make();
  return format(
      "| {} | {} | {} | {} | {} | {} |\n",
      label_of(row),
      row.traits.is_cpu_only ? "cpu" : "cpu, sim",
      row.traits.with_gradient,
      module->parameters().size(),
      module->buffers().size(),
      texts.at(static_cast<std::size_t>(row.traits.against)));
}

TEST(StockModuleRows, AreTheTableOfTheDocument) {
  test::Warnings quiet;
  std::string table;
  for (const StockRow& row : all_rows()) {
    table += line_of(row);
  }
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/stock_modules.md";
  std::stringstream known;
  known << std::ifstream(path).rdbuf();
  const std::string text = known.str();
  const std::size_t start = text.find("|---|---|---|---|---|---|\n");
  ASSERT_NE(start, std::string::npos);
  const std::size_t rows = text.find('\n', start) + 1;
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text.substr(0, rows) << table;
    return;
  }
  EXPECT_EQ(text.substr(rows), table)
      << "LOCKSTEP_UPDATE_GOLDEN=1 writes it anew";
}

} // namespace
} // namespace lockstep
