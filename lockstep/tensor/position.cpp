// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/position.h"

#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/match.h"

namespace lockstep {
namespace {

std::vector<ckpt::NamedShape> shapes_of(const StateDict& weights) {
  std::vector<ckpt::NamedShape> shapes;
  shapes.reserve(weights.entries.size());
  for (const auto& [key, tensor] : weights.entries) {
    shapes.push_back({.name = key, .sizes = tensor.sizes().vec()});
  }
  return shapes;
}

StateDict tensors_of(const StateDict& file) {
  StateDict tensors;
  for (const auto& [key, tensor] : file.entries) {
    if (tensor.defined()) {
      tensors.entries.emplace_back(key, tensor);
    }
  }
  return tensors;
}

} // namespace

Positioned lay_by_position(const StateDict& file, const StateDict& model) {
  Positioned out;
  const StateDict tensors = tensors_of(file);
  for (const auto& [key, tensor] : file.entries) {
    if (!tensor.defined()) {
      out.unexpected_keys.push_back(key);
    }
  }
  const ckpt::PositionMatch match =
      ckpt::match_by_position(shapes_of(tensors), shapes_of(model)).value();
  std::unordered_map<std::string, std::string> modules{{"", ""}};
  for (const ckpt::PositionPair& pair : match.pairs) {
    const auto& [from, tensor] = tensors.entries[pair.from];
    const std::string& to = model.entries[pair.to].first;
    out.weights.entries.emplace_back(to, tensor);
    out.mapping.emplace_back(from, to);
    modules.emplace(ckpt::parent_of(from), ckpt::parent_of(to));
  }
  for (const auto& [path, version] : file.versions) {
    const auto module = modules.find(path);
    if (module != modules.end()) {
      out.weights.versions.emplace_back(module->second, version);
    }
  }
  out.unexpected_keys.insert(
      out.unexpected_keys.end(),
      match.unexpected_keys.begin(),
      match.unexpected_keys.end());
  return out;
}

std::string
position_hint(const StateDict& file, const StateDict& model, bool by_position) {
  const std::string difference = ckpt::first_difference_text(
      shapes_of(tensors_of(file)),
      shapes_of(model));
  if (by_position) {
    return difference.empty()
               ? std::string()
               : "by position both must have the same shapes: " + difference;
  }
  return difference.empty() && file.keys() != model.keys()
             ? "shapes agree in order, only names differ: load with "
               ".by_position = true, or rename with 'lockstep ckpt match'"
             : std::string();
}

} // namespace lockstep
