// SPDX-License-Identifier: BSD-3-Clause
//
// Metrics in a loop of one's own: sums of batches are added, then read; tables
// by class; a metric of the program's own.
#include <iostream>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;

// How far outputs are from targets on average, with its sign.
class Bias : public ls::Metric {
 public:
  [[nodiscard]] std::vector<ls::MetricInfo> infos() const override {
    return {{.name = "bias", .better = ls::Better::kLower, .unit = "mm"}};
  }
  [[nodiscard]] std::int64_t size() const override {
    return 2;
  }
  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::Tensor errors = (outputs - targets).to(torch::kFloat64);
    return torch::stack({errors.sum(), torch::ones_like(errors).sum()});
  }
  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    return {sums[0] / sums[1]};
  }
};

std::span<const double> on_host(const torch::Tensor& sums) {
  return {
      sums.const_data_ptr<double>(),
      static_cast<std::size_t>(sums.numel())};
}

void print(const ls::Metric& metric, std::span<const double> sums) {
  const auto infos = metric.infos();
  const auto values = metric.values(sums);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    std::cout << infos[i].name << " " << values[i] << "\n";
  }
}

int main() try {
  const auto metric = ls::segmentation_metrics(/*num_classes=*/3);
  auto sums = torch::zeros({metric->size()}, torch::kFloat64);
  for (const int shift : {0, 1, 2}) { // batches
    const auto masks = torch::arange(2 * 4 * 4).reshape({2, 4, 4}) % 3;
    const auto guessed = masks.roll(shift, /*dims=*/2);
    const auto outputs = torch::one_hot(guessed, 3).permute({0, 3, 1, 2});
    sums += metric->sums(outputs.to(torch::kFloat32), masks);
  }
  print(*metric, on_host(sums));
  const std::vector<std::string> names{"road", "car", "sky"};
  for (const auto& table : metric->tables(on_host(sums), names)) {
    for (const auto& row : table.rows) {
      std::cout << row.name << ": " << table.columns[0] << " " << row.values[0]
                << "\n";
    }
  }
  const Bias bias;
  const auto lengths = torch::tensor({1.5, 2.5, 4.0});
  const auto two = bias.sums(lengths, torch::tensor({1.0, 2.0, 3.0}));
  print(bias, on_host(two));
} catch (const ls::Exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
