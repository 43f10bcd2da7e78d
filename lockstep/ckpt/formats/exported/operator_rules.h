// SPDX-License-Identifier: BSD-3-Clause
//
// What a graph may call: it is a program, so that operators that touch files,
// other memory or the process are refused unless a user names them.
//   judge_target("torch.ops.aten.from_file.default") // kDangerous
#pragma once

#include <string_view>

namespace lockstep::ckpt {

/// "aten", "conv2d" and "default" of "torch.ops.aten.conv2d.default".
struct OperatorName {
  std::string_view space = {};
  std::string_view name = {};
  std::string_view overload = {};
};

/// Empty parts for what is not spelled so.
OperatorName operator_name(std::string_view target);

/// Why a file must not call the operator of ATen unasked: "it maps or makes
/// files". Empty if it may. `name` is without namespace ("lstm"), `overload` as
/// in `OperatorName` ("input"). Private
/// operators ("_x") and backward ones trust their callers: those that exports
/// of nets have are listed, the rest is refused.
std::string_view refused_operator(
    std::string_view name,
    std::string_view overload);

/// What Python runs for the target of a node.
enum class TargetKind {
  /// An operator of ATen, arithmetic of sizes, a known operator on graphs.
  kKnown,
  /// An operator of a library that has to be loaded first, or one that PyTorch
  /// keeps for itself.
  kForeign,
  /// Touches files, memory or the process, or is a function of Python.
  kDangerous,
};

/// Judges "torch.ops.aten.add.Tensor", "_operator.mul", "math.trunc": all that
/// `torch.export.load` looks up.
TargetKind judge_target(std::string_view target);

/// True for what sympy prints of sizes and conditions: symbols, numbers,
/// functions that sympy and PyTorch have. PyTorch evaluates such texts as
/// Python.
bool is_plain_expression(std::string_view text);

/// True for a condition between sizes of the inputs, as "L['x'].size()[0] <=
/// 5". PyTorch makes Python code of it.
bool is_plain_guard(std::string_view text);

} // namespace lockstep::ckpt
