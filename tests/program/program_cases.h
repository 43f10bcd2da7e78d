// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that Python exported, and what its training of the original nets
// gave.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

/// What a call throws.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "none";
}

/// A value of a file as an argument.
ProgramValue to_argument(const ckpt::Value& value);

struct ProgramBatch {
  ProgramArguments arguments = {};
  at::Tensor target = {};
};

/// What tests/oracle/program_train.py wrote.
struct ProgramCase {
  std::vector<ProgramBatch> batches = {};
  at::Tensor losses = {};
  StateDict state = {};
  at::Tensor eval = {};
};

/// A folder with FOLDER/NET.pt2 and NET.OPTIMIZER.pt, one for the process.
const ScratchDir& program_folder(const std::string& optimizer);
ProgramCase load_case(const std::string& net, const std::string& optimizer);
/// The program of a net as Python exported it.
Program load_net(const std::string& net);
/// The nets of tests/oracle/program_nets.py and program_more_nets.py.
std::vector<std::string> program_nets();

/// The scores among the results.
at::Tensor output_of(const ProgramValue& result);
/// Names of `expected` whose tensors differ from the module's by any bit, or
/// are missing.
std::vector<std::string> differences(
    const torch::nn::Module& module,
    const StateDict& expected);

} // namespace lockstep::test
