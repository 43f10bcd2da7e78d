// SPDX-License-Identifier: BSD-3-Clause
//
// `std::cout << model`: Python's text, for our models and for the wrapper, as
// module and as holder. LibTorch's own overloads stay for LibTorch's modules.
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value << "\n";
  return out.str();
}

TEST(Printing, ModelsShowPythonsText) {
  const std::string python =
      test::run_python("models_print.py", {"1000", "3", "resnet18"});
  EXPECT_EQ(printed(*resnet18()), python);
  EXPECT_EQ(printed(*make_model("resnet18")), python);
}

TEST(Printing, TheWrapperShowsPythonsText) {
  const std::string python =
      test::run_python("models_print.py", {"1000", "3", "wrapped:resnet18"});
  const DataParallel model(resnet18(), {.devices = "cpu*2"});
  EXPECT_EQ(printed(model), python);
  EXPECT_EQ(printed(*model), python);
  EXPECT_EQ(printed(static_cast<const DataParallelBase&>(*model)), python);
}

TEST(Printing, LibTorchsModulesKeepLibTorchs) {
  const torch::nn::Linear layer(2, 3);
  EXPECT_EQ(
      printed(*layer),
      "torch::nn::Linear(in_features=2, out_features=3, bias=true)\n");
  const DataParallel model(layer, {.devices = "cpu*2"});
  EXPECT_EQ(
      printed(model),
      "DataParallel(\n"
      "  (module): Linear(in_features=2, out_features=3, bias=True)\n"
      ")\n");
}

} // namespace
} // namespace lockstep
