// SPDX-License-Identifier: BSD-3-Clause
//
// Where the values of a run's settings come from. Later ones win:
//   default < --recipe < the resumed run < --config FILE < LOCKSTEP_<FLAG>
//   < flag
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// The place that gave each setting its value.
class SettingSources {
 public:
  /// `place` reads well after "from": "the command line", "run.yaml:3".
  void set(const Flag& flag, std::string place);
  /// `otherwise` for a setting that nothing has set.
  [[nodiscard]] std::string of(
      const Flag& flag,
      std::string_view otherwise = "the program") const;

 private:
  std::map<std::string_view, std::string> places_;
};

/// "LOCKSTEP_BATCH_SIZE".
std::string environment_name(const Flag& flag);

/// The value of a variable; nothing if it is not set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;

/// The process's. Threads: none may change the environment meanwhile.
Environment process_environment();

/// Sets what variables `LOCKSTEP_<FLAG>` name. An empty one counts as not set.
/// Errors: as `set_flag`, naming the variable.
void apply_environment(
    TrainConfig& config,
    SettingSources& sources,
    const Environment& environment = process_environment());

/// One line per setting: name, value, source.
std::string settings_table(
    const TrainConfig& config,
    const SettingSources& sources);

} // namespace lockstep::train
