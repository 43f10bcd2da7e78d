// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/position.h"

#include <span>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
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

ckpt::PositionMatch match_first(
    std::span<const ckpt::NamedShape> file,
    std::span<const ckpt::NamedShape> model,
    std::int64_t first) {
  if (first < 0 || first > std::ssize(file) || first > std::ssize(model)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "tensor.load",
         .message = format(
             "the first {} tensors: the file has {}, the model {}",
             first,
             file.size(),
             model.size())});
  }
  const auto count = static_cast<std::size_t>(first);
  const std::string difference =
      ckpt::first_difference_text(file.first(count), model.first(count));
  if (!difference.empty()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "tensor.load",
         .message = format(
             "the first {} tensors do not have the same shapes: {}",
             first,
             difference),
         .detail = "E_NO_MATCH"});
  }
  ckpt::PositionMatch match;
  for (std::size_t i = 0; i < count; ++i) {
    match.pairs.push_back({.from = i, .to = i});
  }
  for (const ckpt::NamedShape& rest : file.subspan(count)) {
    match.unexpected_keys.push_back(rest.name);
  }
  return match;
}

} // namespace

Positioned lay_by_position(
    const StateDict& file,
    const StateDict& model,
    std::int64_t first) {
  Positioned out;
  const StateDict tensors = tensors_of(file);
  for (const auto& [key, tensor] : file.entries) {
    if (!tensor.defined()) {
      out.unexpected_keys.push_back(key);
    }
  }
  const ckpt::PositionMatch match =
      first == 0 ? ckpt::match_by_position(shapes_of(tensors), shapes_of(model))
                       .value()
                 : match_first(shapes_of(tensors), shapes_of(model), first);
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
