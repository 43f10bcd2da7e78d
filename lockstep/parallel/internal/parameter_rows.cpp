// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/parameter_rows.h"

#include <algorithm>
#include <unordered_map>

#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::parallel {
namespace {

constexpr const char* kReplicateOp = "parallel.replicate";

std::string built_differently_hint(const ModuleParts& master) {
  std::string hint = replaced_children_hint(*master.modules.front().lock());
  return hint.empty()
             ? "the factory (or reset(), which clone() calls) must make the "
               "structure of now: layers that went in with replace_module go "
               "in there, too"
             : hint;
}

[[noreturn]] void structure_differs(
    const std::string& what,
    std::size_t a,
    std::size_t b,
    const ModuleParts& master) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = kReplicateOp,
       .message = format(
           "a replica is not built like the module: expected {} {}, got {}",
           a,
           what,
           b),
       .hint = built_differently_hint(master)});
}

// Adds the replicas' parameters number `place` to the row of the master's.
void link_row(
    const std::vector<ModuleParts>& parts,
    std::size_t place,
    ParameterRow& row) {
  for (std::size_t r = 0; r < parts.size(); ++r) {
    // Names may differ: LibTorch's clone() loses those in a Sequential.
    const at::Tensor& leaf = parts[r].parameters[place].second;
    if (leaf.sizes() != row.master.sizes()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = kReplicateOp,
           .message = format(
               "a replica is not built like the module: parameter {} has "
               "another shape",
               parts.front().parameters[place].first),
           .hint = built_differently_hint(parts.front())});
    }
    auto& leaves = row.leaves[r];
    const bool known = std::ranges::any_of(
        leaves,
        [&leaf](const at::Tensor& t) { return t.is_same(leaf); });
    if (!known) {
      leaves.push_back(leaf);
    }
  }
}

// Two parameters of the module, one of a replica: `reset` ties what the module
// has untied since.
void check_not_tied(const std::vector<ParameterRow>& rows) {
  std::unordered_map<const void*, const ParameterRow*> row_of;
  for (const ParameterRow& row : rows) {
    for (std::size_t r = 1; r < row.leaves.size(); ++r) {
      for (const at::Tensor& leaf : row.leaves[r]) {
        const auto [known, is_new] =
            row_of.try_emplace(leaf.unsafeGetTensorImpl(), &row);
        if (!is_new && known->second != &row) {
          raise(
              {.code = ErrorCode::kMismatch,
               .op = kReplicateOp,
               .message = format(
                   "'{}' and '{}' are two parameters, and one in replica {}",
                   known->second->name,
                   row.name,
                   r),
               .hint = "pass a .factory that builds the module as it is now"});
        }
      }
    }
  }
}

} // namespace

std::vector<ParameterRow> make_rows(const std::vector<ModuleParts>& parts) {
  const ModuleParts& master = parts.front();
  for (const ModuleParts& part : parts) {
    const auto check = [&](const char* what, std::size_t a, std::size_t b) {
      if (a != b) {
        structure_differs(what, a, b, master);
      }
    };
    check("modules", master.modules.size(), part.modules.size());
    check("parameters", master.parameters.size(), part.parameters.size());
    check("buffers", master.buffers.size(), part.buffers.size());
  }
  std::vector<ParameterRow> rows;
  std::unordered_map<const void*, std::size_t> row_of;
  for (std::size_t p = 0; p < master.parameters.size(); ++p) {
    const auto& [name, tensor] = master.parameters[p];
    const auto [place, is_new] =
        row_of.try_emplace(tensor.unsafeGetTensorImpl(), rows.size());
    if (is_new) {
      rows.push_back({.name = name, .master = tensor});
      rows.back().leaves.resize(parts.size());
    }
    link_row(parts, p, rows[place->second]);
  }
  check_not_tied(rows);
  return rows;
}

} // namespace lockstep::parallel
