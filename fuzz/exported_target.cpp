// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <memory>
#include <utility>

#include "fuzz/exercise.h"
#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/formats/exported/operator_rules.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "tests/support/memory_fs.h"

namespace lockstep::fuzz {
namespace {

// What is read goes back as it was, or is refused.
void write_back(const ckpt::Checkpoint& file) {
  MemoryFs fs;
  if (!ckpt::rewrite(file, file.root, "out.pt2", {}, fs)) {
    return;
  }
  const auto back = ckpt::load("out.pt2", {.check_crc = false}, fs);
  if (!back || !ckpt::graph_difference(file, *back).empty()) {
    std::abort(); // a sound program became another
  }
}

} // namespace

void fuzz_exported(ByteSpan input) {
  [[maybe_unused]] const bool is_plain =
      ckpt::is_plain_expression(as_text(input)) ||
      ckpt::is_plain_guard(as_text(input));
  const Watch watch(input);
  const auto file = ckpt::load(watch.source(), "input.pt2", watch.options());
  if (!file || file->program == nullptr) {
    return;
  }
  exercise(*file);
  write_back(*file);
}

} // namespace lockstep::fuzz
