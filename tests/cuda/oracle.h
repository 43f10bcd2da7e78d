// SPDX-License-Identifier: BSD-3-Clause
//
// What Python computes on the same GPU. Starting it with CUDA takes seconds, so
// all that it shall look at is written first, and it runs once.
//   EXPECT_EQ(CudaAnswers::get().verdict("rng"), "same bits");
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"
#include "tests/optim/oracle_cases.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

/// Our optimizer of a case of tests/optim, with parameters on the GPU.
struct CudaSession {
  std::vector<at::Tensor> params = {};
  std::unique_ptr<Optimizer> optimizer = {};

  static CudaSession start(const OracleCase& test_case);
  void steps(int first, int last);
  /// Weights and optimizer. Aliases no memory of the GPU.
  [[nodiscard]] ckpt::Value snapshot() const;
  void load(const ckpt::Value& saved);
};

/// Parameters of tests/optim on the GPU, and their gradients.
std::vector<at::Tensor> cuda_params();
void set_cuda_grads(const std::vector<at::Tensor>& params, int step);
/// Copies the weights of a snapshot.
void load_weights_of(
    const ckpt::Value& saved,
    const std::vector<at::Tensor>& params);

/// The cases of tests/optim without schedulers.
const std::vector<OracleCase>& cuda_cases();

/// Files that both sides wrote, and what Python says of ours.
class CudaAnswers {
 public:
  static CudaAnswers& get();

  /// Of a case, or of "weights", "rng" and the like; "" if Python said nothing.
  [[nodiscard]] std::string verdict(const std::string& name) const;
  [[nodiscard]] std::string path(std::string_view file) const {
    return folder_ / file;
  }
  /// The module that the files hold, as it was saved; on the GPU.
  [[nodiscard]] const std::vector<at::Tensor>& state() const {
    return state_;
  }

 private:
  CudaAnswers();
  void save_optimizers() const;
  void save_weights();
  void save_generator() const;

  ScratchDir folder_;
  std::vector<at::Tensor> state_ = {};
  std::map<std::string, std::string> verdicts_ = {};
};

} // namespace lockstep::test
