// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/early_stop.h"

#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

class EarlyStop final : public StepHook {
 public:
  explicit EarlyStop(std::int64_t patience) : patience_(patience) {}

  [[nodiscard]] std::string text() const override {
    return format(
        "the run ends after {} without a new best",
        counted(static_cast<std::uint64_t>(patience_), "epoch"));
  }
  std::vector<StatePart> parts() override {
    StatePart part = number_part("epochs_without_best", without_best_);
    part.if_missing = IfMissing::kIgnore;
    return {std::move(part)};
  }
  [[nodiscard]] bool decides_bits() const override {
    return false;
  }
  void forget_tests() override {
    without_best_ = 0;
  }
  void end_epoch(const EpochRecord& record) override {
    without_best_ = record.is_best ? 0 : without_best_ + 1;
  }
  [[nodiscard]] std::string is_done() const override {
    return without_best_ < patience_
               ? std::string()
               : format(
                     "no new best in {} (--patience)",
                     counted(
                         static_cast<std::uint64_t>(without_best_),
                         "epoch"));
  }

 private:
  std::int64_t patience_;
  std::int64_t without_best_ = 0;
};

} // namespace

std::shared_ptr<StepHook> early_stop(std::int64_t patience) {
  return std::make_shared<EarlyStop>(patience);
}

} // namespace lockstep::train
