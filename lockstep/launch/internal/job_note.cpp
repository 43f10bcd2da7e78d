// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/job_note.h"

#include <cstdlib>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

std::string value_of(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the header says when to call
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The error file is JOB/attempt_N/RANK/error.json.
std::string note_path() {
  const std::string file = value_of("TORCHELASTIC_ERROR_FILE");
  if (file.empty()) {
    return "";
  }
  const std::string attempt = parent_directory(parent_directory(file));
  return base_name(attempt).starts_with("attempt_")
             ? format("{}/note", parent_directory(attempt))
             : "";
}

} // namespace

bool is_restarted() {
  const auto count = parse_number<int>(value_of("TORCHELASTIC_RESTART_COUNT"));
  return count.value_or(0) > 0;
}

void write_job_note(const std::string& text) {
  const std::string path = note_path();
  if (!path.empty()) {
    // Without it a restarted job begins anew: no reason to end this one.
    static_cast<void>(write_file_atomically(real_fs(), path, text));
  }
}

std::string read_job_note() {
  const std::string path = note_path();
  const auto text =
      path.empty() ? Result<std::string>("") : read_text(real_fs(), path);
  return text ? *text : "";
}

} // namespace lockstep::launch
