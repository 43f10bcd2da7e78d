// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of a command that looks at one model, or at files that are
// named, and has a few flags of its own: a row of `train::kTrainCommands`.
//   CommandFlags flags(kCommand, args);
//   const ModelRequest request = read_model_request(flags, {});
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli_train/commands.h"
#include "lockstep/models/model.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {

/// What was typed.
class CommandFlags {
 public:
  /// `--flag=value` and `--flag value` are the same, as are underscores and
  /// hyphens. Errors: throws kInvalidArgument for a flag that the command does
  /// not have (with the nearest one), for one without its value or with an
  /// empty one, and for a second model. "-" is no flag.
  CommandFlags(const train::TrainCommand& command, Arguments args);

  /// Whether a flag was typed.
  [[nodiscard]] bool has(std::string_view flag) const;

  /// Errors: throws kInvalidArgument unless it is a whole number from 1 to
  /// `maximum`.
  [[nodiscard]] std::int64_t number(
      std::string_view flag,
      std::int64_t otherwise,
      std::int64_t maximum = std::numeric_limits<std::int64_t>::max()) const;

  /// One of `choices`, of which the first is the default.
  /// Errors: throws kInvalidArgument for another word.
  [[nodiscard]] std::string choice(
      std::string_view flag,
      std::span<const std::string_view> choices) const;

  /// What follows a flag; empty if it was not typed.
  [[nodiscard]] std::string text(std::string_view flag) const;

  /// What `--devices` names, or else the variable `LOCKSTEP_DEVICES`, as for
  /// `lockstep train`; empty: the best that are here.
  [[nodiscard]] std::string devices() const;

  /// The bare arguments in their order.
  [[nodiscard]] const std::vector<std::string>& arguments() const {
    return arguments_;
  }

  /// The model. Errors: throws kInvalidArgument if none was typed.
  [[nodiscard]] std::string model() const;

  /// Prints what `--help` shows; `about`: what the command does.
  void print_help(std::string_view about) const;

  /// Throws kInvalidArgument with a hint that leads to the help.
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail(std::string message, std::string hint) const;

 private:
  void add_argument(const std::string& word);
  [[noreturn]] void refuse(const std::string& word) const;
  [[nodiscard]] bool takes_model() const;

  const train::TrainCommand* command_;
  std::vector<std::string> arguments_ = {};
  /// By flag; a switch has no text.
  std::map<std::string, std::string, std::less<>> values_ = {};
};

/// A model, and the images it is to see.
struct ModelRequest {
  std::string model = {};
  /// Units: pixels; height and width.
  std::int64_t img_size = 0;
  std::int64_t batch_size = 1;
  std::int64_t num_classes = 1000;
  std::int64_t in_channels = 3;
};

/// Reads MODEL, `--img-size`, `--batch-size`, `--num-classes`, `--in-channels`;
/// `defaults` has what is not given, and 0 for the size that the model is made
/// for. Errors: throws kInvalidArgument for images that the model refuses.
ModelRequest read_model_request(
    const CommandFlags& flags,
    const ModelRequest& defaults);

/// With fresh weights. Errors: as `make_model`.
std::shared_ptr<Model> make_requested(const ModelRequest& request);

} // namespace lockstep::cli_train
