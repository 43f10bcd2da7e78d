// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/part_tree.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lockstep/tensor/internal/batch_norms.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::program {
namespace {

class ProgramPart : public torch::nn::Module,
                    public BatchNormPart,
                    public UnsavedBuffers {
 public:
  ProgramPart(
      const std::string& python_class,
      std::string path,
      std::shared_ptr<const ProgramData> data)
      : torch::nn::Module(python_class),
        path_(std::move(path)),
        data_(std::move(data)) {}

  [[nodiscard]] bool calls_batch_norm() const override {
    return data_->batch_norms.contains(path_);
  }
  [[nodiscard]] bool is_unsaved(std::string_view buffer) const override {
    return data_->unsaved_buffers.contains(path_ + "." + std::string(buffer));
  }

 private:
  std::string path_;
  std::shared_ptr<const ProgramData> data_;
};

/// Paths of children, in the order in which a list of names meets them.
using Children = std::vector<std::string_view>;

// Both lists in their orders, which one walk of the same children gave.
Children merged(const Children& first, const Children& second) {
  Children both;
  auto next = second.begin();
  for (const std::string_view child : first) {
    const auto found = std::ranges::find(next, second.end(), child);
    if (found != second.end()) {
      both.insert(both.end(), next, found);
      next = found + 1;
    }
    both.push_back(child);
  }
  both.insert(both.end(), next, second.end());
  return both;
}

} // namespace

void PartTree::add_all(const Names& parameters, const Names& buffers) {
  std::map<std::string_view, std::array<Children, 2>> children; // by parent
  for (const std::size_t kind : {0, 1}) {
    for (const std::string_view name : kind == 0 ? parameters : buffers) {
      std::string_view parent;
      for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
           dot = name.find('.', dot + 1)) {
        Children& known = children[parent][kind];
        const std::string_view child = name.substr(0, dot);
        if (known.empty() || known.back() != child) {
          known.push_back(child);
        }
        parent = child;
      }
    }
  }
  for (const auto& [parent, lists] : children) {
    for (const std::string_view child : merged(lists[0], lists[1])) {
      at(child);
    }
  }
}

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
  const auto name = data_->part_classes.find(path);
  return parent.register_module(
      std::string(path.substr(path.rfind('.') + 1)),
      std::make_shared<ProgramPart>(
          name == data_->part_classes.end() ? "Module" : name->second,
          std::string(path),
          data_));
}

} // namespace lockstep::program
