// SPDX-License-Identifier: BSD-3-Clause
//
// scatter and gather of nested values against PyTorch's own
// (tests/oracle/scatter_gather.py), line by line.
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/functional.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

using Value = std::tuple<
    at::Tensor,
    std::tuple<at::Tensor, std::map<std::string, at::Tensor>>,
    int,
    std::vector<at::Tensor>>;

// "(2,3) 0,1,2,3,4,5"
std::string text(const at::Tensor& tensor) {
  std::ostringstream out;
  out << '(';
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    out << (i > 0 ? "," : "") << tensor.size(i);
  }
  out << ") ";
  const at::Tensor flat = tensor.flatten();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    out << (i > 0 ? "," : "") << flat[i].item<std::int64_t>();
  }
  return out.str();
}

std::string lines_of(std::int64_t rows, std::size_t devices, std::int64_t dim) {
  std::ostringstream out;
  const auto line = [&](const std::string& what, const at::Tensor& tensor) {
    out << rows << ' ' << devices << ' ' << dim << ' ' << what << ' '
        << text(tensor) << '\n';
  };
  const at::Tensor x = torch::arange(rows * 3).view(
      dim == 0 ? std::vector<std::int64_t>{rows, 3}
               : std::vector<std::int64_t>{3, rows});
  const Value value{x, {x + 100, {{"b", x + 200}, {"a", x + 300}}}, 7, {}};
  const std::vector<c10::Device> cpus(devices, torch::Device("cpu"));
  const auto shards = parallel::scatter(value, cpus, dim);
  std::vector<std::vector<at::Tensor>> outputs;
  std::vector<std::vector<at::Tensor>> sums;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    EXPECT_EQ(std::get<2>(shards[i]), 7);
    outputs.push_back(structure::flatten(shards[i]));
    sums.emplace_back();
    for (const at::Tensor& tensor : outputs.back()) {
      line("replica " + std::to_string(i), tensor);
      sums.back().push_back(tensor.sum());
    }
  }
  for (const at::Tensor& tensor :
       parallel::gather(outputs, cpus.front(), dim)) {
    line("joined", tensor);
  }
  for (const at::Tensor& tensor : parallel::gather(sums, cpus.front())) {
    line("sums", tensor);
  }
  return out.str();
}

TEST(ScatterOracle, NestedValuesAreCutAndJoinedAsInPyTorch) {
  std::string ours;
  for (const std::int64_t rows : {1, 2, 5, 7, 10, 30}) {
    for (const std::size_t devices : {1U, 2U, 3U, 4U, 8U}) {
      for (const std::int64_t dim : {0, 1}) {
        ours += lines_of(rows, devices, dim);
      }
    }
  }
  EXPECT_EQ(ours, test::run_python("scatter_gather.py"));
}

} // namespace
} // namespace lockstep
