// SPDX-License-Identifier: BSD-3-Clause
//
// What members of a module hold, which nothing but reference counts tells.
//
// Note [Displaced parts]
// LibTorch's clone() calls `reset()` on the copy and then assigns copies of the
// children to those that it made. What these had registered is registered no
// more, but members of the copy may hold it and compute with fresh random
// numbers:
//   Linear l(4, 4); v.push_back(l); list->push_back(l); // forward calls v
//   w = fc->weight;
// To find them, objects of the module's classes are assigned to those of a
// spare copy: that copies the members and counts what they hold. Where a
// module's hold a registered part more often than the copy's hold theirs, the
// copy's hold another.
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

/// The modules and tensors registered below a module, and how many hold them.
/// Threads: nobody else may use the module meanwhile.
class HeldParts {
 public:
  explicit HeldParts(const torch::nn::Module& root);

  /// Calls `tell(name, child)` for modules that have more holders than at the
  /// start.
  void each_held(
      const std::function<void(const std::string&, torch::nn::Module&)>& tell)
      const;
  /// Names of the parts that members of `root` hold and members of `copy`, made
  /// by its clone(), do not: Note [Displaced parts]. `make_spare` makes another
  /// copy; it is called only if some part has holders that the copy's has not.
  [[nodiscard]] std::vector<std::string> displaced_in(
      const torch::nn::Module& copy,
      const std::function<std::shared_ptr<torch::nn::Module>()>& make_spare)
      const;

 private:
  struct Part {
    std::string name = {};
    /// One of them.
    std::shared_ptr<torch::nn::Module> module = {};
    at::Tensor tensor = {};
    /// reset() of the root makes it, and nothing takes its place.
    bool is_of_root = false;
    std::size_t holders = 0;

    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] const void* address() const;
  };
  using Counts = std::vector<std::size_t>;

  void add(const torch::nn::Module& module, const std::string& prefix);
  [[nodiscard]] bool is_held_more(const HeldParts& copies) const;
  [[nodiscard]] Counts gained_by(const std::function<void()>& assign) const;
  [[nodiscard]] bool contains(const torch::nn::Module& module) const;

  const torch::nn::Module& root_;
  std::vector<Part> parts_ = {};
};

} // namespace lockstep
