// SPDX-License-Identifier: BSD-3-Clause
//
// A trainer gives its model one tensor: samples of two inputs are for a loop
// over a Loader, and the error says so.
#include <map>
#include <string>
#include <tuple>

#include <torch/types.h>

#include "lockstep/data/made_dataset.h"

std::shared_ptr<lockstep::Dataset> samples() {
  return lockstep::as_dataset(lockstep::make_dataset(4, [](std::int64_t i) {
    const at::Tensor image = torch::full({2}, static_cast<double>(i));
#ifdef LOCKSTEP_MISUSE
    const std::map<std::string, at::Tensor> input{{"image", image}};
#else
    const at::Tensor& input = image;
#endif
    return std::tuple{input, i};
  }));
}
