// SPDX-License-Identifier: BSD-3-Clause
//
// The options of LibTorch's layers, which their texts show in part only:
// "CrossEntropyLoss()" tells of no label smoothing.
#pragma once

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Gives `to`, if it is a layer of LibTorch's with options as `from` is, the
/// options of `from`. Tensors and functions among them stay: they are `to`'s
/// own. Returns whether it is one. A Transformer, its encoder and decoder are
/// not: they use their options, which hold modules, in construction only.
bool copy_options(const torch::nn::Module& from, torch::nn::Module& to);

/// False where two Functionals are seen to call different functions: of other
/// types, or at other addresses. Arguments that one binds are not seen.
bool may_call_same(const torch::nn::Module& a, const torch::nn::Module& b);

} // namespace lockstep
