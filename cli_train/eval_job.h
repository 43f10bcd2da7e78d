// SPDX-License-Identifier: BSD-3-Clause
//
// A trained model and the data that it is judged by.
//   const EvalJob job({.model = "runs/animals"});
//   const EvalAnswer answer = job.run();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/inference/evaluation.h"
#include "lockstep/train/inference/trained_model.h"

namespace lockstep::cli_train {

struct EvalRequest {
  /// Run folder or checkpoint.
  std::string model = {};
  /// A data set's name, or a folder or file; empty: the run's data.
  std::string data = {};
  /// "test", "train" or "all".
  std::string part = "test";
  /// 0: the run's.
  std::int64_t batch_size = 0;
  std::int64_t workers = 1;
  std::int64_t worst = 25;
  /// Empty: the best that are here.
  std::string devices = {};
};

/// What came out, and of what.
struct EvalAnswer {
  /// The checkpoint.
  std::string file = {};
  std::string model = {};
  std::int64_t epoch = 0;
  std::string task = {};
  /// "folder", and where.
  std::string data = {};
  std::string data_dir = {};
  std::string part = {};
  train::TrainedData trained = {};
  /// What `Evaluation::worst` counts.
  std::vector<std::shared_ptr<const Dataset>> parts = {};
  /// What was decided by looking at the data, and which files were left out.
  std::vector<std::string> notes = {};
  train::Evaluation found = {};
};

/// Errors: throws as `open_trained`, `make_trained`, `open_dataset`,
/// `with_classes_of`; kMismatch (E_OTHER_DATA) for samples that the model was
/// not made for, kUnsupported for a run of a program's own task or data.
EvalAnswer evaluate_run(const EvalRequest& request);

} // namespace lockstep::cli_train
