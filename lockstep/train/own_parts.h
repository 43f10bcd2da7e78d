// SPDX-License-Identifier: BSD-3-Clause
//
// What a run consists of, and what follows from it: the names of the run,
// whether there is a test, what the best epoch is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/strategy.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// The parts of a run. A program gives a model and data: its own, or those that
/// settings name (`named_parts`), as the command line does. A task, an
/// optimizer and a schedule that are absent are made as the settings say. The
/// run's files name parts of the program "own:" and their class; settings that
/// they leave without effect are told in a warning.
struct OwnParts {
  /// Any module with `forward(Tensor)`, as DataParallel takes it. What it gives
  /// is a tensor, or any structure of them that `task` takes. Its random
  /// numbers are the program's: `config.seed` is not set.
  AnyModel model = {};
  /// The whole data set on each rank: the trainer deals it to them.
  std::shared_ptr<const Dataset> train_data = {};
  /// None, or one of no samples: no test. Alone only with `config.test_only`.
  std::shared_ptr<const Dataset> test_data = {};
  /// Loss and metrics. None: as `config.task` and `config.metric` say
  /// (`task_for`).
  Task task = {};
  /// Over parameters of the model: one of Lockstep's, or `torch::optim`'s SGD,
  /// Adam, AdamW, RMSprop or Adagrad. The trainer makes its steps; checkpoints
  /// hold its state. Of one that makes its state at once (Adagrad) the model is
  /// on the first device before. Ownership: as `OptimizerRef`; it must outlive
  /// the trainer.
  std::optional<OptimizerRef> optimizer = {};
  /// Of `optimizer`. Without one its rates are those of
  /// `config.lr_scheduler`.
  std::shared_ptr<Scheduler> schedule = {};
  /// Of `schedule`: it steps after each step of the optimizer, not after each
  /// epoch.
  bool schedules_steps = false;
  /// What the settings call a model and data that they name; empty: the
  /// program's own, which are called by their class.
  std::string model_name = {};
  std::string data_name = {};
  /// What the data that settings name say of themselves when a run starts.
  std::vector<std::string> data_notes = {};
  std::vector<std::string> data_warnings = {};

  /// Whether there are data, and a test.
  [[nodiscard]] bool has_data() const {
    return train_data != nullptr || test_data != nullptr;
  }
  [[nodiscard]] bool has_test() const {
    return test_data != nullptr && test_data->size() > 0;
  }
  /// The training data, or those of a test without any, which have their shape.
  [[nodiscard]] const std::shared_ptr<const Dataset>& first_data() const {
    return train_data == nullptr ? test_data : train_data;
  }
};

/// `config` with the names of the parts: `kOwnPrefix` and a class's name for
/// those that a program brings itself.
TrainConfig with_own_names(TrainConfig config, const OwnParts& own);

/// Errors: throws kInvalidArgument (E_OWN_PARTS), naming the field, for a part
/// that is missing (a model; training data in a run that trains; data for a
/// test only) and for parts that do not go together: data without targets with
/// the settings' loss, a schedule without its optimizer or of another one.
void check_parts(const TrainConfig& config, const OwnParts& own);

} // namespace lockstep::train
#pragma GCC visibility pop
