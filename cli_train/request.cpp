// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/request.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli_train/recipes.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/step/device_choice.h"

namespace lockstep::cli_train {
namespace {

/// What is given now: by the file of `--config`, the environment, the flags.
struct Given {
  const CommandLine& line;
  /// Of the file, which may be a pipe: it is read once.
  std::string yaml = {};

  void apply_to(train::TrainConfig& config, train::SettingSources& sources)
      const {
    if (!line.config_file.empty()) {
      train::apply_yaml(config, yaml, line.config_file, &sources);
    }
    train::apply_environment(config, sources);
    apply(line, config, sources);
  }
};

/// The settings of the run that goes on: in its checkpoint, or, before the
/// first one, in its folder.
void apply_earlier(
    const train::Resumption& from,
    Request& request,
    FileSystem& fs) {
  train::apply_args(
      request.config,
      from.checkpoint.guessed_args,
      &request.sources);
  if (const auto args = from.checkpoint.root.find("args")) {
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

/// Where only one of `--devices` and `--no-cuda` is given now, the other one
/// is the earlier run's and does not contradict it.
void settle_devices(const train::TrainConfig& given, Request& request) {
  train::TrainConfig& config = request.config;
  if (given.devices.empty() && !given.cuda &&
      train::names_cuda(config.devices)) {
    config.devices.clear();
    request.sources.set(*train::find_key("devices"), "--no-cuda");
  }
  if (train::names_cuda(given.devices) && given.cuda && !config.cuda) {
    config.cuda = true;
    request.sources.set(*train::find_key("cuda"), "--devices");
  }
}

// Says what was looked for.
[[noreturn]] void no_data_there(
    const std::string& name,
    const std::string& near) {
  std::error_code ignored;
  const std::string path =
      std::filesystem::absolute(name, ignored).lexically_normal();
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "train.data",
       .message = format(
           "'{}' is neither a folder or file (looked for {}) nor the name of a "
           "data set: {}",
           escape(name),
           escape(path, 200),
           join(dataset_names(), ", ")),
       .hint = near.empty() ? "'lockstep data PATH' shows what data are read as"
                            : format("did you mean --data {}?", near),
       .detail = "E_NO_DATA"});
}

// A folder or file where a data set is named, or where none is: by its looks.
void settle_data(Request& request) {
  train::TrainConfig& config = request.config;
  const train::Flag& data = *train::find_flag("--data");
  const std::vector<std::string> names = dataset_names();
  const bool is_named = !request.sources.of(data, "").empty();
  if (!is_named) {
    if (!config.data_dir.empty()) {
      if (!real_fs().stat(config.data_dir)) {
        no_data_there(config.data_dir, "");
      }
      config.data = dataset_at(config.data_dir);
      request.sources.set(data, "the looks of the data");
    }
    return;
  }
  if (std::ranges::find(names, config.data) != names.end()) {
    return;
  }
  if (config.data.starts_with(train::kOwnPrefix)) {
    return; // of a run that goes on: it is for the trainer to say
  }
  if (!real_fs().stat(config.data)) {
    no_data_there(config.data, nearest(config.data, names));
  }
  std::string found = dataset_at(config.data);
  config.data_dir = std::exchange(config.data, std::move(found));
  request.sources.set(*train::find_flag("--data-dir"), "--data");
}

} // namespace

Request resolve(const CommandLine& line, const std::string& begun) {
  FileSystem& fs = real_fs();
  Given given{.line = line};
  if (!line.config_file.empty()) {
    given.yaml = read_text(fs, line.config_file).value();
  }
  Request request;
  // First alone: which run goes on is not for that run to say.
  train::TrainConfig alone;
  given.apply_to(alone, request.sources);
  if (!begun.empty()) {
    alone.resume = begun;
  }
  request.resumption = train::find_resumption(fs, alone);
  request.sources = {};
  if (!line.recipe.empty()) {
    request.recipe = recipe_text(line.recipe);
    train::apply_yaml(
        request.config,
        request.recipe,
        format("recipe {}", line.recipe),
        &request.sources);
  }
  if (request.resumption) {
    apply_earlier(*request.resumption, request, fs);
  }
  given.apply_to(request.config, request.sources);
  settle_devices(alone, request);
  settle_data(request);
  // The folder that is asked for may have held another run when this one began.
  if (!begun.empty()) {
    request.config.output = begun;
    request.config.name.clear();
  }
  return request;
}

std::string settle_default_data(
    const Request& request,
    const std::string& folder) {
  const train::TrainConfig& config = request.config;
  const bool is_given =
      !request.sources.of(*train::find_flag("--data"), "").empty() ||
      !config.data_dir.empty() || request.resumption.has_value();
  if (is_given) {
    return {};
  }
  if (!dataset_in(folder).empty()) {
    return "--data is not given: FashionMNIST, with --data DIR your own";
  }
  const std::string devices = train::choose_devices(config).spec;
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.data",
       .message = format(
           "nothing to train on: --data is not given, and FashionMNIST, which "
           "would be taken, is not in {}. This would train {} for {} with {}, "
           "lr {}, batches of {}, on {}",
           folder,
           config.model,
           counted(static_cast<std::uint64_t>(config.epochs), "epoch"),
           config.opt,
           shortest(config.lr),
           config.batch_size,
           devices),
       .hint = "--data DIR names a folder of images (one folder for each "
               "class), a table, masks or arrays; 'lockstep data DIR' shows "
               "what is there",
       .detail = "E_NO_DATA"});
}

std::string fit_to_samples(Request& request, std::int64_t samples) {
  train::TrainConfig& config = request.config;
  const train::Flag& batch_size = *train::find_flag("--batch-size");
  const train::Flag& lr = *train::find_flag("--lr");
  const bool has_files = may_have_image_files(config.data);
  const bool is_given = !request.sources.of(batch_size, "").empty() ||
                        request.resumption.has_value();
  constexpr std::int64_t kSmallest = 8;
  constexpr std::int64_t kSteps = 12;
  if (!has_files || is_given) {
    return {};
  }
  std::int64_t fit = kSmallest;
  while (fit < config.batch_size && samples / (2 * fit) >= kSteps) {
    fit *= 2;
  }
  std::vector<std::string> chosen;
  if (fit < config.batch_size) {
    config.batch_size = fit;
    request.sources.set(batch_size, "the number of samples");
    chosen.push_back(format("--batch-size {}", fit));
  }
  if (request.sources.of(lr, "").empty()) {
    // In step with the batch, as Goyal et al. 2017 have it: 0.1 for 256.
    config.lr *= static_cast<double>(config.batch_size) / 256;
    request.sources.set(lr, "the batch size");
    chosen.push_back(format("--lr {}", shortest(config.lr)));
  }
  return chosen.empty() ? std::string()
                        : format(
                              "{} training samples: {}, unless given",
                              samples,
                              join(chosen, " and "));
}

} // namespace lockstep::cli_train
