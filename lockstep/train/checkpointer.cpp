// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpointer.h"

#include <array>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/config_file.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 5> kNeeded{
    "epoch",
    "state_dict",
    "best_acc1",
    "optimizer",
    "scheduler"};

[[noreturn]] void not_resumable(
    const std::string& path,
    const std::string& message,
    const std::string& hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = message,
       .hint = hint,
       .path = path});
}

/// True for a state dict on its own: a dict with nothing but tensors.
bool is_bare_weights(const ckpt::Value& root) {
  const ckpt::Dict* dict = root.as_dict();
  if (dict == nullptr || dict->items.empty()) {
    return false;
  }
  for (const auto& [key, value] : dict->items) {
    if (value.as_tensor() == nullptr) {
      return false;
    }
  }
  return true;
}

ckpt::Value to_checkpoint(const TrainConfig& config, const TrainState& state) {
  ValueBuilder builder;
  return ckpt::Value::dict(
      {{"epoch", state.epoch},
       {"arch", config.model},
       {"state_dict", builder.state_dict(state_dict(state.model))},
       {"best_acc1", state.best_acc1},
       {"optimizer", state.optimizer.state_dict()},
       {"scheduler", state.scheduler.state_dict()},
       {"args", to_args(config)},
       {"rng", ckpt::Value::dict({{"cpu", builder.tensor(get_rng_state())}})}});
}

} // namespace

Status save_checkpoint(
    FileSystem& fs,
    const RunFolder& folder,
    const TrainConfig& config,
    const TrainState& state,
    bool is_best) {
  const ckpt::Value root = to_checkpoint(config, state);
  LOCKSTEP_TRY(ckpt::save(folder.file(kCheckpointFile), root, {}, fs));
  if (is_best) {
    LOCKSTEP_TRY(ckpt::save(folder.file(kBestFile), root, {}, fs));
  }
  return {};
}

Resumed open_checkpoint(FileSystem& fs, const std::string& path) {
  Resumed checkpoint{
      .path = path,
      .root = ckpt::load(path, {}, fs).value().root};
  std::vector<std::string> missing;
  for (const std::string_view key : kNeeded) {
    if (checkpoint.root.find(key) == nullptr) {
      missing.push_back(format("'{}'", key));
    }
  }
  if (is_bare_weights(checkpoint.root)) {
    not_resumable(
        path,
        "the file holds weights only, not the state of a run",
        format("--initial-checkpoint {} starts a new run from them", path));
  }
  if (!missing.empty()) {
    not_resumable(
        path,
        format("not a checkpoint of a run; missing {}", join(missing, ", ")),
        format("'lockstep ckpt {}' shows what it holds", path));
  }
  return checkpoint;
}

void restore(const Resumed& checkpoint, TrainState& state) {
  const ckpt::Value& root = checkpoint.root;
  const std::int64_t* epoch = root.find("epoch")->as_int();
  const auto best = root.find("best_acc1")->number();
  if (epoch == nullptr || *epoch < 0 || !best) {
    not_resumable(
        checkpoint.path,
        "'epoch' and 'best_acc1' must be numbers",
        format("'lockstep ckpt {}' shows what it holds", checkpoint.path));
  }
  load_state_dict(
      state.model,
      *root.find("state_dict"),
      {.strip_prefix = "module."});
  state.optimizer.load_state_dict(*root.find("optimizer"));
  state.scheduler.load_state_dict(*root.find("scheduler"));
  state.epoch = *epoch;
  state.best_acc1 = *best;
  const ckpt::Value* rng = root.find("rng");
  const ckpt::Value* cpu = rng == nullptr ? nullptr : rng->find("cpu");
  if (cpu != nullptr && cpu->as_tensor() != nullptr) {
    set_rng_state(to_tensor(*cpu->as_tensor()));
  }
}

} // namespace lockstep::train
