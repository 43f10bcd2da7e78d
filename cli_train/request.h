// SPDX-License-Identifier: BSD-3-Clause
//
// What a command line asks for once all that it names is read: defaults, a
// recipe, the resumed run, the file of `--config`, the environment, the flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli_train/flags.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::cli_train {

struct Request {
  train::TrainConfig config = {};
  train::SettingSources sources = {};
  std::optional<train::Resumption> resumption = {};
  /// The text of `--recipe`; empty for none.
  std::string recipe = {};
};

/// `begun`: the folder of a run that goes on whatever `--resume` says, as an
/// earlier attempt of this job began it; "" for none.
/// Errors: throws what reading the files throws, and as `train::set_flag`.
Request resolve(const CommandLine& line, const std::string& begun = {});

/// Of a run that names no data: what is said of the data that it takes; empty
/// for others. Errors: throws kInvalidArgument (E_NO_DATA), with what would
/// have been trained, where these data are not in `folder`.
std::string settle_default_data(
    const Request& request,
    const std::string& folder = std::string(kFashionMnistFolder));

/// For data that may be image files (`may_have_image_files`), unless
/// `--batch-size` is given or a run goes on: smaller batches of few samples, so
/// that an epoch has a dozen steps; and unless `--lr` is given, a rate that
/// goes with the batch, 0.1 for 256. Returns what was chosen; empty for
/// nothing.
std::string fit_to_samples(Request& request, std::int64_t samples);

} // namespace lockstep::cli_train
