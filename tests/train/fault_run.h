// SPDX-License-Identifier: BSD-3-Clause
//
// A run without training, for disks that fail: the rows, checkpoints and links
// of the trainer's loop, in its order, in a few milliseconds. `live` is one
// life of the process; `judge` looks at what a life left behind.
//   MemoryFs memory;
//   FaultFs faulty(memory, {.fail_at = 31});
//   const Life life = live(faulty, {});
//   EXPECT_THAT(Judge({}).judge(memory, life), IsEmpty());
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "tests/support/memory_fs.h"

namespace lockstep::train {

inline const std::string kRunFolder = "run";
/// How the one warning begins that a run may give after any death.
inline constexpr std::string_view kLeftFolder =
    "the run folder: it was left by a process that died";

/// What the run does. An epoch has two steps.
struct FakeRun {
  /// Units: percent, of each epoch.
  std::vector<double> accuracy = {40, 60, 50};
  /// Off: checkpoints after epochs only.
  bool saves_inside_epochs = true;
  std::int64_t keep = 2;

  [[nodiscard]] std::int64_t steps() const {
    return 2 * static_cast<std::int64_t>(accuracy.size());
  }
  /// What a checkpoint of that step is worth; 0 inside of an epoch.
  [[nodiscard]] double accuracy_of(std::int64_t step) const {
    return step > 0 && step % 2 == 0 ? accuracy[step / 2 - 1] : 0.0;
  }
};

/// What one life of the process did and said.
struct Life {
  /// What ended it before its time.
  std::optional<Error> error = {};
  /// The newest step whose checkpoint was begun, and how many were.
  std::int64_t tried = 0;
  std::size_t tries = 0;
  /// Steps whose checkpoints were reported to be saved.
  std::vector<std::int64_t> saved = {};
  std::vector<std::string> warnings = {};

  /// The newest of them; 0: none.
  [[nodiscard]] std::int64_t newest() const {
    return saved.empty() ? 0 : saved.back();
  }
};

struct LiveOptions {
  /// Gone without a word after so many steps, if it gets there.
  std::optional<std::int64_t> until = {};
  /// Told of a checkpoint as soon as it is reported to be saved.
  std::function<void(const Life& so_far)> on_saved = [](const Life&) {};
};

/// Begins in `run`, or goes on there. Nothing runs at the same time, so that
/// operations of the file system have an order.
Life live(FileSystem& fs, const FakeRun& run, const LiveOptions& options = {});

/// Knows what an undisturbed run leaves.
class Judge {
 public:
  explicit Judge(FakeRun run);

  /// Promises that a machine does not keep which finds `fs` after `life`; none:
  /// all is well. Goes on with the run there, to its end if asked to.
  std::vector<std::string>
  judge(FileSystem& fs, const Life& life, bool to_the_end);

  [[nodiscard]] const FakeRun& run() const {
    return run_;
  }

 private:
  /// The step at which the run goes on.
  [[nodiscard]] std::int64_t found_step() const;
  void check_life(const Life& life);
  void check_found(FileSystem& fs, const Life& life);
  void check_links(FileSystem& fs, const Life& life);
  void check_rows(FileSystem& fs, std::int64_t step);
  void check_end(FileSystem& fs);
  void report(std::string what);

  FakeRun run_;
  /// Text of each file of the undisturbed run, with all checkpoints.
  std::map<std::string, std::string> expected_;
  std::optional<Resumption> found_;
  std::vector<std::string> broken_;
};

/// What `fs` holds now, to be changed without changing `fs`.
MemoryFs copy_of(const MemoryFs& fs);

/// Gives temporary files to a process that does not live any more.
void bury(FileSystem& fs);

/// Names of temporary files.
std::vector<std::string> temporaries(FileSystem& fs);

} // namespace lockstep::train
