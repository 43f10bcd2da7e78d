// SPDX-License-Identifier: BSD-3-Clause
//
// What a program brings itself to a run, and what follows from it: the names of
// the run, its data, whether there is a test, what the best epoch is.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "lockstep/data/dataset.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// What a program brings itself. A model, data and a loss that are absent come
/// from the settings, each as a whole: with training data of its own a program
/// tests on test data of its own, or not at all. The run's files name parts of
/// the program "own:" and their class; settings that they leave without effect
/// are told in a warning.
struct OwnParts {
  /// Any module with `Tensor forward(Tensor)`, as DataParallel takes it. Its
  /// random numbers are the program's: `config.seed` is not set.
  AnyModel model = {};
  /// The whole data set on each rank: the trainer deals it to them.
  std::shared_ptr<const Dataset> train_data = {};
  /// None, or one of no samples: no test. Alone only with `config.test_only`.
  std::shared_ptr<const Dataset> test_data = {};
  LossFunction loss = {};
  /// Of a `loss`: the targets are numbers of classes and the outputs have a
  /// score for each, so that the accuracy is counted and chooses the best
  /// epoch. Otherwise the lowest loss of the test does, or of the training if
  /// there is no test. The settings' loss always classifies.
  bool classifies = false;

  /// Whether the data are the program's, and there is a test.
  [[nodiscard]] bool has_data() const {
    return train_data != nullptr || test_data != nullptr;
  }
  [[nodiscard]] bool has_test() const {
    return !has_data() || (test_data != nullptr && test_data->size() > 0);
  }
  [[nodiscard]] bool has_classes() const {
    return !loss || classifies;
  }
  [[nodiscard]] BestBy best_by() const;
};

/// `config` with "own:" and a class's name as the names of the model and the
/// data that a program brings itself.
TrainConfig with_own_names(TrainConfig config, const OwnParts& own);

/// What `with_own_names` gives; no model or data set of Lockstep is called so.
inline constexpr std::string_view kOwnPrefix = "own:";

/// For training and for testing; the second is null in a run without a test.
/// Both are the program's, or both are the settings': a run is what it was
/// given. Without training data a test has them in their place, for their
/// shape.
/// Errors: throws kInvalidArgument (E_OWN_PARTS) for test data alone in a run
/// that trains, for a test without data, and for data without targets with the
/// settings' loss; and as `open_dataset`.
std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>>
open_data_of(const TrainConfig& config, const OwnParts& own);

} // namespace lockstep::train
