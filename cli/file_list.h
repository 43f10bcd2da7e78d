// SPDX-License-Identifier: BSD-3-Clause
//
// Commands that take several files: which ones, and what is said at the end.
//   LOCKSTEP_ASSIGN(const FileList list, list_files(paths));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// The positional PATH..., "-" for standard input.
void add_paths(CLI::App& app, std::vector<std::string>& paths);

/// What the paths stand for.
struct FileList {
  std::vector<std::string> files = {};
  /// False if one checkpoint was named: then it is answered for alone.
  bool is_several = false;
};

/// A folder that is not a checkpoint itself stands for the checkpoints below
/// it, by the endings of their names, each file once. Errors: kNotFound
/// (E_NO_CHECKPOINT) for a folder without any.
Result<FileList> list_files(const std::vector<std::string>& paths);

/// Collects one answer per file; a bad file does not stop the others.
class FileAnswers {
 public:
  /// `what` is the good state: "sound".
  FileAnswers(std::string op, std::string what)
      : op_(std::move(op)), what_(std::move(what)) {}

  /// `json` has the facts; `error` says why they are not all good.
  void
  add(const std::string& path, Json json, const std::optional<Error>& error);

  /// Prints the JSON, or how many files are bad. Returns the worst exit status.
  [[nodiscard]] int finish(std::string_view schema, bool json);

 private:
  std::string op_;
  std::string what_;
  Json files_ = Json::array();
  std::size_t count_ = 0;
  std::size_t bad_ = 0;
  std::optional<Error> worst_;
};

} // namespace lockstep::cli
