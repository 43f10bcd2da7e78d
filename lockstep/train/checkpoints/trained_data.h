// SPDX-License-Identifier: BSD-3-Clause
//
// What a model was trained on, as its checkpoints keep it: whoever uses the
// model later needs neither the data nor the command line.
//   state.add(data_part(trained_data(*train_set, config)));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/data/dataset.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// The key of the part.
inline constexpr std::string_view kDataPart = "data";

struct TrainedData {
  /// As the model saw them: {3, 224, 224}.
  std::vector<std::int64_t> sample_shape = {};
  TargetFormat target = {};
  /// 0: targets are no classes.
  std::int64_t num_classes = 0;
  /// Of classes or values; may be empty.
  std::vector<std::string> class_names = {};
  PixelFormat pixels = {};
  /// As the settings name them: "classification", "top1".
  std::string task = {};
  std::string metric = {};

  /// What a model gives for each sample, or pixel: classes or values.
  [[nodiscard]] std::int64_t num_outputs() const;
  /// The name of a class or value; its number where there are none.
  [[nodiscard]] std::string name_of(std::int64_t index) const;
  /// All of them.
  [[nodiscard]] std::vector<std::string> names() const;

  friend bool operator==(const TrainedData&, const TrainedData&) = default;
};

/// What a model's outputs mean for people.
enum class OutputKind {
  /// One class for each sample: shares by softmax.
  kClasses,
  /// Any number of labels: a share each by sigmoid.
  kLabels,
  /// One row of values for each sample.
  kValues,
  /// Values in any other shape: heat maps.
  kMaps,
  /// A class for each pixel.
  kMasks
};

/// What a model of that task and those targets gives. The outputs of a task of
/// a program's own are taken for what its targets are. Errors: throws
/// kUnsupported (E_TASK) for data without targets, and for classes in any other
/// shape.
OutputKind output_kind(const TrainedData& data);

/// `data` as the model sees them; `config` as the run uses it.
TrainedData trained_data(const Dataset& data, const TrainConfig& config);

/// {'sample_shape': [3, 32, 32], 'target': 'classes', 'target_shape': [],
/// 'num_classes': 3, 'class_names': [...], 'pixels': {'shape': [...], 'mean':
/// [...], 'std': [...]}, 'task': 'classification', 'metric': 'top1'}
ckpt::Value to_value(const TrainedData& data);

/// Errors: throws kMismatch or kNotFound for anything else, with the entry.
TrainedData to_trained_data(const ckpt::Value& saved);

/// `data`: compares when it is loaded. A checkpoint may lack it.
/// Errors of loading: throws kMismatch (E_OTHER_DATA) for targets of another
/// kind, another number of classes, or other names for them: the model's class
/// 3 would be another animal.
StatePart data_part(const TrainedData& data);

} // namespace lockstep::train
