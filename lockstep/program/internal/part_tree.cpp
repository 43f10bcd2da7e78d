// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/part_tree.h"

#include <algorithm>
#include <string>

#include "lockstep/tensor/internal/batch_norms.h"

namespace lockstep::program {
namespace {

class ProgramPart : public torch::nn::Module, public BatchNormPart {
 public:
  ProgramPart(const std::string& python_class, bool calls_batch_norm)
      : torch::nn::Module(python_class), calls_batch_norm_(calls_batch_norm) {}

  [[nodiscard]] bool calls_batch_norm() const override {
    return calls_batch_norm_;
  }

 private:
  bool calls_batch_norm_;
};

} // namespace

std::shared_ptr<torch::nn::Module> PartTree::at(std::string_view path) {
  auto part = root_;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    auto& child = children_[{part.get(), path.substr(begin, end - begin)}];
    if (child == nullptr) {
      child = add(*part, path.substr(0, end));
    }
    part = child;
    begin = end + 1;
  }
  return part;
}

std::shared_ptr<torch::nn::Module> PartTree::add(
    torch::nn::Module& parent,
    std::string_view path) {
  const auto name = data_.part_classes.find(path);
  return parent.register_module(
      std::string(path.substr(path.rfind('.') + 1)),
      std::make_shared<ProgramPart>(
          name == data_.part_classes.end() ? "Module" : name->second,
          data_.batch_norms.contains(path)));
}

} // namespace lockstep::program
