// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/request.h"

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/config_file.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::cli_train {
namespace {

/// The settings of the run that goes on: in its checkpoint, or, before the
/// first one, in its folder.
void apply_earlier(Request& request, FileSystem& fs) {
  const train::Resumption& from = *request.resumption;
  if (const auto* args = from.checkpoint.root.find("args")) {
    train::apply_args(request.config, *args, &request.sources);
  } else if (from.path.empty()) {
    const std::string path = format("{}/{}", from.folder, train::kArgsFile);
    train::apply_yaml(
        request.config,
        read_text(fs, path).value(),
        path,
        &request.sources);
  }
}

} // namespace

Request resolve(const CommandLine& line) {
  FileSystem& fs = real_fs();
  Request request;
  // What to resume is not a setting of a run, so files do not decide it.
  train::TrainConfig typed;
  train::apply_environment(typed, request.sources);
  apply(line, typed, request.sources);
  request.resumption = train::find_resumption(fs, typed);
  if (request.resumption) {
    apply_earlier(request, fs);
  }
  if (!line.config_file.empty()) {
    train::apply_yaml(
        request.config,
        read_text(fs, line.config_file).value(),
        line.config_file,
        &request.sources);
  }
  train::apply_environment(request.config, request.sources);
  apply(line, request.config, request.sources);
  return request;
}

} // namespace lockstep::cli_train
