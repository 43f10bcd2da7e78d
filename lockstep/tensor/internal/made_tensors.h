// SPDX-License-Identifier: BSD-3-Clause
//
// What members of a copy hold that nobody can reach.
//
// Note [Tensors of members]
// A tensor that is not registered is a member's alone. What `reset()` or a
// constructor draws at random for it differs from copy to copy, and so does the
// memory of a layer that LibTorch's clone() displaced, or of a view of it. So
// the tensors that operations make while a module is made are noted. If some
// live on without being registered, the module is made once more: where these
// have other values, so have those of the module that was to be copied.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Notes what LibTorch's operations return in this thread while it lives, the
/// innermost one only. Holds none of it.
/// Threads: the first one of a process installs stand-ins (modules.h), while
/// no other thread calls operations.
class MadeTensors {
 public:
  MadeTensors();
  ~MadeTensors();
  MadeTensors(const MadeTensors&) = delete;
  MadeTensors& operator=(const MadeTensors&) = delete;

  /// Those that live and share no memory with what is registered in `module`,
  /// in the order in which they were made.
  [[nodiscard]] std::vector<at::Tensor> unregistered_in(
      const torch::nn::Module& module) const;
  /// Called with each result; an undefined one is passed over.
  void note(const at::Tensor& tensor);

 private:
  using Weak =
      c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  MadeTensors* outer_ = nullptr;
  std::vector<Weak> tensors_ = {};
};

/// The tensors of members of `copy`, made while `made` lived, that have other
/// values in what `make_spare` returns: "Float [4, 4]". See Note [Tensors of
/// members]; `make_spare` is called only if there are any.
std::vector<std::string> unlike_members(
    const MadeTensors& made,
    const torch::nn::Module& copy,
    const std::function<std::shared_ptr<torch::nn::Module>()>& make_spare);

} // namespace lockstep
