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
// The other way round, a `reset()` that appends to a list leaves the module's
// parts in the copy's list, before its own.
// To find both, objects of the module's classes are assigned to those of a
// spare copy: that copies the members and counts what they hold. A member of
// the copy should hold the copy's part, or the module's, where the module's
// holds its part: with less it holds a displaced one, with more it holds both.
#pragma once

#include <cstdint>
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

  /// Who holds parts from now on is the copy. To be called before it is made,
  /// and when all others that keep parts meanwhile have them.
  void begin();
  /// Calls `tell(name, child)` for modules that have more holders than at the
  /// start.
  void each_held(
      const std::function<void(const std::string&, torch::nn::Module&)>& tell)
      const;
  /// Names of parts that the copy's members hold otherwise: Note [Displaced
  /// parts].
  struct Differences {
    /// In their place the copy's members hold what nothing registers.
    std::vector<std::string> displaced = {};
    /// Those of the module, and the copy's as well.
    std::vector<std::string> doubled = {};
  };
  /// `copy` was made by clone() since; `make_spare` makes another, and is
  /// called only if the holders of some part leave a doubt.
  [[nodiscard]] Differences differences_in(
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
  using Counts = std::vector<std::int64_t>;

  void add(const torch::nn::Module& module, const std::string& prefix);
  /// How many hold each part now.
  [[nodiscard]] Counts counts() const;
  /// Which parts have more holders than when it began.
  [[nodiscard]] std::vector<bool> borrowed() const;
  [[nodiscard]] bool is_held_more(const HeldParts& copies) const;
  [[nodiscard]] bool contains(const torch::nn::Module& module) const;

  const torch::nn::Module& root_;
  std::vector<Part> parts_ = {};
  Counts begun_ = {};
};

} // namespace lockstep
