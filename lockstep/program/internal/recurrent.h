// SPDX-License-Identifier: BSD-3-Clause
//
// Recurrent layers of a graph. LibTorch's kernels of oneDNN write past the end
// of tensors of other sizes; in Python `nn.LSTM` checks them, here it is done
// before each call.
#pragma once

#include <ATen/core/function_schema.h>

#include "lockstep/program/internal/block.h"

namespace lockstep::program {

/// True for lstm.input, gru.input, rnn_tanh.input and rnn_relu.input.
bool is_recurrent(const c10::FunctionSchema& schema);

/// A way to run a step. Errors: throws c10::Error for arguments whose sizes do
/// not belong together.
void run_recurrent(const Step& step, Frame& frame);

} // namespace lockstep::program
