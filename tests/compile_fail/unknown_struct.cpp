// SPDX-License-Identifier: BSD-3-Clause
//
// A struct that holds tensors and has no Structure: it would go whole to every
// replica, so it does not compile.
#include <torch/nn/cloneable.h>

#include "lockstep/parallel/data_parallel.h"

namespace ls = lockstep;

struct Pair {
  torch::Tensor left;
  torch::Tensor right;
};

#ifndef LOCKSTEP_MISUSE
template <>
struct lockstep::Structure<Pair> : lockstep::Fields<&Pair::left, &Pair::right> {
};
#endif

struct Net : torch::nn::Cloneable<Net> {
  void reset() override {}
  static torch::Tensor forward(const Pair& pair) {
    return pair.left + pair.right;
  }
};

torch::Tensor run(ls::DataParallel<Net>& model, const Pair& pair) {
  return model->forward(pair);
}
