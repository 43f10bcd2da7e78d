// SPDX-License-Identifier: BSD-3-Clause
//
// A few samples of the test and what the model says of them.
//   TestSamples samples(test_data, trained);
//   record.samples = samples.show(*strategy);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// Threads: one at a time.
class TestSamples {
 public:
  /// Of the first `count` of `data`; `trained` says what its targets are. As
  /// many at a time as `batch_size`: what fits into memory in a test does here.
  TestSamples(
      std::shared_ptr<const Dataset> data,
      std::int64_t count,
      std::int64_t batch_size,
      TrainedData trained);

  /// Forward passes of them: at most twelve, evenly spread. Empty where outputs
  /// are not what such targets need, or if reading or predicting them throws:
  /// this is for people, and no reason to end a run. Random numbers of the
  /// process stay as they are.
  std::vector<SampleRecord> show(Strategy& strategy);
  /// What was thrown, the first time; empty from then on, and if nothing was.
  [[nodiscard]] std::string take_failure() {
    return std::exchange(failure_, {});
  }

 private:
  /// Reads the samples, once.
  void read();
  /// On the CPU.
  at::Tensor outputs_of(Strategy& strategy) const;
  [[nodiscard]] SampleRecord record_of(std::size_t i, const at::Tensor& outputs)
      const;
  void note_failure(std::string text);
  void add_words(SampleRecord& record, std::size_t i, const at::Tensor& output)
      const;

  std::shared_ptr<const Dataset> data_;
  std::int64_t count_ = 0;
  std::int64_t batch_size_ = 1;
  TrainedData trained_;
  OutputKind kind_ = OutputKind::kClasses;
  /// What was read; empty before, and if that failed.
  std::vector<std::int64_t> indices_ = {};
  at::Tensor inputs_ = {};
  std::vector<std::int64_t> classes_ = {};
  std::vector<float> values_ = {};
  std::vector<Image> pictures_ = {};
  bool has_read_ = false;
  std::string failure_ = {};
  bool has_failed_ = false;
};

} // namespace lockstep::train
