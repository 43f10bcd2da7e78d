// SPDX-License-Identifier: BSD-3-Clause
//
// What decides the bits of a run besides its state: the machine's and the
// library's way to compute, and the order of the samples. A checkpoint keeps
// it, so that a run that goes on can say what cannot be equal.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/train/settings/config.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// Whether the weights of convolutions have channels last: where that is asked
/// for, and with kernels that want it.
bool has_channels_last(const TrainConfig& config);

/// One field that is not as it was.
struct ChangedField {
  std::string field = {};
  std::string saved = {};
  std::string now = {};
};

/// What the settings do not tell of a run.
struct RunFacts {
  std::int64_t ranks = 1;
  std::int64_t train_samples = 0;
  /// `Dataset::digest`; 0: not known.
  std::uint64_t train_digest = 0;
  /// 0 without a test, too.
  std::uint64_t test_digest = 0;
  /// What each hook does.
  std::vector<std::string> hooks = {};
};

/// Named texts. Made once the run is set up.
class RunIdentity {
 public:
  /// `devices` and `strategy` as they are used; `config.threads` is resolved,
  /// `config.data` as `with_own_names` has it.
  RunIdentity(
      const TrainConfig& config,
      std::span<const c10::Device> devices,
      const std::string& strategy,
      const RunFacts& facts);

  /// `lockstep`: {'format': 1, 'numerics': {...}, 'order': {...}}. Loading only
  /// compares. A checkpoint may lack it. Ownership: borrows this object.
  StatePart part();

  /// What decides how numbers are computed: versions, kernels, instruction
  /// set, threads, devices, layout, augmentation, loss, sizes of batches. Rates
  /// and other options of the optimizer are those of the checkpoint.
  [[nodiscard]] const std::vector<ChangedField>& numerics() const {
    return numerics_.differences;
  }
  /// What decides which samples come when: data set, files, number, seed.
  [[nodiscard]] const std::vector<ChangedField>& order() const {
    return order_.differences;
  }
  /// What it was made of.
  [[nodiscard]] const RunFacts& facts() const {
    return facts_;
  }
  /// Of the training and the test data, as far as they are known, for a
  /// comparison between ranks.
  [[nodiscard]] std::string digests() const;
  /// Whether the test data, or how many of them are used, are known not to be
  /// those of the checkpoint, whose best epoch was chosen by others.
  [[nodiscard]] bool has_other_test_data() const;

 private:
  struct Group {
    std::vector<std::pair<std::string, std::string>> fields = {};
    /// Those that hold several texts.
    std::vector<std::pair<std::string, std::vector<std::string>>> lists = {};
    std::vector<ChangedField> differences = {};

    [[nodiscard]] ckpt::Value save() const;
    void compare(const ckpt::Value* saved);
  };

  RunFacts facts_;
  Group numerics_;
  Group order_;
};

/// "threads: 2, now 4; devices: cpu*2, now cpu".
std::string to_string(const std::vector<ChangedField>& differences);

} // namespace lockstep::train
