// SPDX-License-Identifier: BSD-3-Clause
//
// A run on a folder of easy pictures, made once for all tests of a suite.
//   const std::string run = test::TrainedRun::get().run();
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

/// Three classes of pictures, "cat", "dog" and U+732B, red, green and blue with
/// noise, 20 of each in sizes that differ; a perceptron learns them.
class TrainedRun {
 public:
  /// Trains when it is first asked for; all tests of a program share it.
  static const TrainedRun& get();

  [[nodiscard]] std::string data() const {
    return dir_ / "animals";
  }
  [[nodiscard]] std::string run() const {
    return dir_ / "run";
  }
  [[nodiscard]] std::string best() const {
    return run() + "/model_best.pth.tar";
  }
  /// Pictures of a class.
  [[nodiscard]] std::vector<std::string> pictures(
      const std::string& name) const;
  /// What the run printed; empty if it went well.
  [[nodiscard]] const std::string& problem() const {
    return problem_;
  }

 private:
  TrainedRun();

  ScratchDir dir_;
  std::string problem_;
};

/// A picture of one colour and noise. `index` decides the noise and the size.
void write_picture(const std::string& path, int channel, int index);

/// Writes a copy of the checkpoint `from` that `change` has changed to `to`,
/// and returns `to`.
std::string changed_checkpoint(
    const std::string& from,
    const std::string& to,
    const std::function<void(ckpt::Value& root)>& change);

/// Takes an entry out.
void drop_entry(ckpt::Value& root, std::string_view key);

/// What `lockstep-train` makes of a command line.
struct ProgramOutcome {
  int status = -1;
  std::string out = {};
  std::string err = {};
};
ProgramOutcome run_program(const std::vector<std::string>& args);

} // namespace lockstep::test
