// SPDX-License-Identifier: BSD-3-Clause
//
// What all replicas of a program share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/program/internal/block.h"
#include "lockstep/program/internal/guards.h"
#include "lockstep/program/internal/sizes.h"

namespace lockstep::program {

/// An output of the graph that is a new value of buffers or inputs.
struct Mutation {
  std::size_t output = 0;
  /// Places of the inputs; more than one where tied ones have one name.
  std::vector<std::size_t> inputs = {};
  bool is_buffer = false;
  /// Place among `ProgramData::parts` of a module whose training counts
  /// batches; nothing for any other value.
  std::optional<std::size_t> counts_in = {};
};

struct ProgramData {
  std::string path = {};
  /// The archive, for writing it again.
  ckpt::ExportedFile file = {};
  /// One of `file.models`, without the nodes of its graph.
  ckpt::ExportedModel* model = nullptr;
  std::shared_ptr<const Block> block = {};
  /// Of the user's inputs.
  std::vector<std::string> input_names = {};
  InputSizes sizes;
  InputGuards guards;
  /// Paths of the modules that nodes come from; the first is "".
  std::vector<std::string> parts = {};
  /// Their Python classes, as far as a node tells: "Linear".
  std::map<std::string, std::string, std::less<>> part_classes = {};
  /// Paths of the parts that call aten::batch_norm.
  std::set<std::string, std::less<>> batch_norms = {};
  /// Names of buffers that are no part of the state_dict.
  std::set<std::string, std::less<>> unsaved_buffers = {};
  /// By output.
  std::vector<Mutation> mutations = {};
  std::size_t nodes = 0;
  std::size_t flags = 0;
  std::size_t flags_on = 0;
  std::vector<std::string> unswitchable = {};
  /// That nothing trains is said once.
  std::shared_ptr<std::atomic_flag> has_warned = {};
};

/// "layer1.0" of "layer1.0.weight"; "" for a name of the net itself.
inline std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? "" : path.substr(0, dot);
}

/// True for a buffer's name if it counts the batches of a batch norm.
inline bool is_batch_counter(std::string_view name) {
  return name.ends_with("num_batches_tracked");
}

/// The weights of a program as tensors, one for each input of the graph,
/// undefined for the user's. Tied ones are one tensor.
std::vector<at::Tensor> load_tensors(const ckpt::ExportedModel& model);

/// Copies on `device`, or where each is. What is one tensor stays one, and what
/// shares memory shares it.
std::vector<at::Tensor> copy_tensors(
    const std::vector<at::Tensor>& tensors,
    const std::optional<c10::Device>& device);

} // namespace lockstep::program
