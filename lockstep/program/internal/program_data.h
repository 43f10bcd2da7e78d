// SPDX-License-Identifier: BSD-3-Clause
//
// What all replicas of a program share.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/program/internal/block.h"
#include "lockstep/program/internal/guards.h"
#include "lockstep/program/internal/sizes.h"

namespace lockstep::program {

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
  std::size_t nodes = 0;
  std::size_t flags = 0;
  std::size_t flags_on = 0;
  std::vector<std::string> unswitchable = {};
};

/// True for a buffer that counts the batches of a batch norm.
bool is_batch_counter(const ckpt::ExportedInput& input);

/// The weights of a program as tensors, one for each input of the graph,
/// undefined for the user's. Tied ones are one tensor.
std::vector<at::Tensor> load_tensors(const ckpt::ExportedModel& model);

} // namespace lockstep::program
