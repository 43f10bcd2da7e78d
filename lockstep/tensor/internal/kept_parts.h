// SPDX-License-Identifier: BSD-3-Clause
//
// A module's modes while it is evaluated, and its tensors while a copy is made
// of it: Note [What a module was given] in modules.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Which modules of a tree train, to put it back: a train() of the user's may
/// switch layers of another tree.
/// Threads: nobody else may use the tree meanwhile.
class KeptModes {
 public:
  explicit KeptModes(const torch::nn::Module& module);
  void restore() const;

 private:
  void keep(const torch::nn::Module& module);

  std::map<torch::nn::Module*, bool> kept_ = {};
};

/// Evaluation mode while it lives; then every module is as it was, those that a
/// program froze, too: through train(), of which a class may make more.
class EvaluationMode {
 public:
  // The module itself may lie on the stack.
  explicit EvaluationMode(torch::nn::Module& module);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool was_training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_ = {};
};

/// What a module registers, and its modes. Its tensors get their memory,
/// values, versions and `requires_grad` back, whatever reset() and train() of a
/// copy do to what both hold. Threads: nobody else may use them meanwhile.
class KeptParts {
 public:
  explicit KeptParts(const torch::nn::Module& module);
  ~KeptParts() {
    restore();
  }
  KeptParts(const KeptParts&) = delete;
  KeptParts& operator=(const KeptParts&) = delete;

  void restore() const;
  [[nodiscard]] bool contains(const at::Tensor& tensor) const {
    return place_of_.contains(tensor.unsafeGetTensorImpl());
  }
  /// Calls `tell(name, tensor)` for those that have more holders than before.
  void each_held(
      const std::function<void(const std::string&, const at::Tensor&)>& tell)
      const;

 private:
  struct Kept {
    std::string name = {};
    at::Tensor tensor = {};
    at::Tensor data = {};
    at::Tensor values = {};
    std::optional<std::int64_t> version = {};
    bool requires_grad = false;
    std::size_t holders = 0;
  };
  static void restore_values(const Kept& kept);

  KeptModes modes_;
  std::vector<Kept> kept_ = {};
  std::unordered_map<const c10::TensorImpl*, std::size_t> place_of_ = {};
};

} // namespace lockstep
