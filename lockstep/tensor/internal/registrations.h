// SPDX-License-Identifier: BSD-3-Clause
//
// What a module registers, to exchange or restore it: every Cloneable is a
// friend of Module, and nothing else can.
#pragma once

#include <array>
#include <memory>
#include <string>

#include <torch/nn/cloneable.h>
#include <torch/ordered_dict.h>

namespace lockstep {
struct Registrations;
} // namespace lockstep

namespace torch::nn {
template <>
class Cloneable<lockstep::Registrations> {
 public:
  /// Parameters, then buffers.
  template <class M>
  static auto tensors_of(M& module) {
    return std::array{&module.parameters_, &module.buffers_};
  }
  static OrderedDict<std::string, std::shared_ptr<Module>>& children_of(
      Module& module) {
    return module.children_;
  }
};
} // namespace torch::nn

namespace lockstep {
using Registered = torch::nn::Cloneable<Registrations>;
} // namespace lockstep
