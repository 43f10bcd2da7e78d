// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/oracle.h"

#include <sstream>

#include "lockstep/ckpt/load.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/state_parts.h"
#include "tests/cuda/support.h"
#include "tests/optim/support.h"
#include "tests/parallel/nets.h"
#include "tests/support/python.h"

namespace lockstep::test {

std::vector<at::Tensor> cuda_params() {
  std::vector<at::Tensor> params;
  for (const at::Tensor& param : make_params()) {
    params.push_back(param.detach().to(kGpu).requires_grad_());
  }
  return params;
}

void set_cuda_grads(const std::vector<at::Tensor>& params, int step) {
  set_grads(params, step);
  for (const at::Tensor& param : params) {
    at::Tensor& grad = param.mutable_grad();
    grad = grad.defined() ? grad.to(kGpu) : at::Tensor();
  }
}

void load_weights_of(
    const ckpt::Value& saved,
    const std::vector<at::Tensor>& params) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ckpt::Value& weight = saved.find("weights")->as_list()->items[i];
    params[i].copy_(to_tensor(*weight.as_tensor()));
  }
}

CudaSession CudaSession::start(const OracleCase& test_case) {
  CudaSession session{.params = cuda_params()};
  session.optimizer = make_case_optimizer(test_case, session.params);
  return session;
}

void CudaSession::steps(int first, int last) {
  // As in tests/optim: a fused momentum cannot start late.
  const int offset = optimizer->param_groups()[0].flag("fused") ? 1 : 0;
  for (int step = first; step < last; ++step) {
    set_cuda_grads(params, step + offset);
    optimizer->step();
  }
}

ckpt::Value CudaSession::snapshot() const {
  ckpt::List weights;
  ValueBuilder builder;
  for (const at::Tensor& param : params) {
    weights.items.push_back(builder.tensor(param.detach()));
  }
  return ckpt::Value::dict(
      {{"weights", std::move(weights)},
       {"optimizer", optimizer->state_dict()}});
}

void CudaSession::load(const ckpt::Value& saved) {
  load_weights_of(saved, params);
  optimizer->load_state_dict(*saved.find("optimizer"));
}

const std::vector<OracleCase>& cuda_cases() {
  static const std::vector<OracleCase> unscheduled = [] {
    std::vector<OracleCase> cases = oracle_cases();
    std::erase_if(cases, [](const auto& c) { return !c.scheduler.empty(); });
    return cases;
  }();
  return unscheduled;
}

CudaAnswers& CudaAnswers::get() {
  static CudaAnswers answers;
  return answers;
}

std::string CudaAnswers::verdict(const std::string& name) const {
  const auto found = verdicts_.find(name);
  return found == verdicts_.end() ? "" : found->second;
}

CudaAnswers::CudaAnswers() {
  save_optimizers();
  save_weights();
  save_generator();
  std::istringstream lines(run_python("cuda_files.py", {folder_.path()}));
  for (std::string name, verdict; lines >> name >> std::ws;) {
    std::getline(lines, verdict);
    verdicts_[name] = verdict;
  }
}

void CudaAnswers::save_optimizers() const {
  ckpt::save(path("cases.pth"), cases_value(cuda_cases())).value();
  for (const OracleCase& test_case : cuda_cases()) {
    CudaSession session = CudaSession::start(test_case);
    session.steps(0, 5);
    ckpt::save(path(test_case.name + ".cpp5.pth"), session.snapshot()).value();
  }
}

// A net and an optimizer that live on the GPU, in files with both locations.
void CudaAnswers::save_weights() {
  torch::manual_seed(7);
  auto net = conv_net();
  net->to(kGpu);
  AdamW optimizer(*net, {.lr = 0.01, .fused = true});
  torch::cross_entropy_loss(
      net->forward(images(8).to(kGpu)),
      labels(8).to(kGpu))
      .backward();
  optimizer.step();
  state_ = copies(state_of(*net));
  const ckpt::Value all =
      CheckpointEntry(
          {{"epoch", 3}, {"state_dict", net}, {"optimizer", optimizer}})
          .value();
  ckpt::save(path("ours.pth"), all).value();
  map_locations(all, "cuda:0");
  ckpt::save(path("ours_cuda.pth"), all).value();
}

// The state of a run, and what the generators give next.
void CudaAnswers::save_generator() const {
  torch::manual_seed(23);
  torch::rand({3}, kGpu);
  const std::vector devices{kGpu};
  train::RunState state;
  state.add(train::generator_part(devices));
  ckpt::Value root = state.save();
  root.set("next", lockstep::to_value(torch::rand({100}, kGpu)));
  root.set(
      "mask",
      lockstep::to_value(torch::dropout(torch::ones({100}, kGpu), 0.5, true)));
  ckpt::save(path("rng.pth"), root).value();
}

} // namespace lockstep::test
