// SPDX-License-Identifier: BSD-3-Clause
//
// Quantized layers keep their weights packed, and their classes put into the
// state_dict what is neither a parameter nor a buffer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What such a class adds for one module, in its order. Ownership: the tensors
/// are the tree's, but for scales and zero points, which the class makes of
/// numbers.
struct QuantizedEntries {
  std::vector<Item> items = {};
  /// Packed weights that no file can hold without PyTorch's own classes, and
  /// these: {"param", "__torch__.torch.classes.rnn.CellParamsBase"}.
  std::vector<std::pair<std::string, std::string>> unread = {};
};

/// Nothing for modules of other classes.
QuantizedEntries quantized_entries(const Value& module);

/// True for a quantized convolution, whose pickled state is a tuple without
/// parameters, buffers and children.
bool is_packed_convolution(const Value& module);

} // namespace lockstep::ckpt
