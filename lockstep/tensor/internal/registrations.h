// SPDX-License-Identifier: BSD-3-Clause
//
// What a module registers, to exchange or restore it: every Cloneable is a
// friend of Module, and nothing else can.
#pragma once

#include <array>
#include <memory>
#include <optional>
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
  template <class M>
  static auto& children_of(M& module) {
    return module.children_;
  }
  /// As train(), but of this module alone, whatever its class makes of that.
  static void set_training(Module& module, bool on) {
    module.is_training_ = on;
  }
  /// What a Cloneable does with a child of another, `other`: `module` becomes
  /// its copy. Does nothing for a class that is no Cloneable.
  static void assign_clone(Module& module, Module& other) {
    module.clone_(other, std::nullopt);
  }
};
} // namespace torch::nn

namespace lockstep {
using Registered = torch::nn::Cloneable<Registrations>;
} // namespace lockstep
