// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/budget.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return a > kMost - b ? kMost : a + b;
}

std::uint64_t
allowed(std::uint64_t free, std::uint64_t per_byte, std::uint64_t bytes) {
  return sum(free, bytes > kMost / per_byte ? kMost : per_byte * bytes);
}

double part(std::uint64_t count, std::uint64_t most) {
  return static_cast<double>(count) /
         static_cast<double>(std::max<std::uint64_t>(most, 1));
}

// "100 steps of work; expected at most 80: 16 and 64 for each byte of the file"
Error refused(
    const std::string& what,
    std::uint64_t most,
    std::uint64_t free,
    std::uint64_t per_byte,
    const std::string& hint) {
  return read_error(
      ErrorCode::kUnsafe,
      "E_LIMIT",
      format(
          "{}; expected at most {}: {} and {} for each byte of the file",
          what,
          most,
          free,
          per_byte),
      hint);
}

} // namespace

Budget::Budget(const Limits& limits)
    : free_bytes_(limits.max_made_bytes), free_steps_(limits.max_steps) {
  allow();
}

std::uint64_t Budget::file_bytes() const {
  return sum(files_, inflated_);
}

void Budget::allow() {
  made_.most = allowed(free_bytes_, kMadePerByte, file_bytes());
  read_.most = made_.most.load();
  steps_.most = allowed(free_steps_, kStepsPerByte, file_bytes());
}

void Budget::add_file(std::uint64_t bytes) {
  files_ = sum(files_, bytes);
  allow();
}

void Budget::inflates_by(std::uint64_t bytes) {
  inflated_ = std::max<std::uint64_t>(inflated_, bytes);
  allow();
}

void Budget::note_depth(std::uint64_t levels) {
  depth_ = std::max<std::uint64_t>(depth_, levels);
}

double Budget::used() const {
  return std::max(
      {part(made_.count, made_.most),
       part(steps_.count, steps_.most),
       part(read_.count, read_.most)});
}

Error Budget::too_much_made() const {
  return refused(
      format("values, names and copies of {} bytes", made_.count.load()),
      made_.most,
      free_bytes_,
      kMadePerByte,
      "Limits::max_made_bytes allows more");
}

Error Budget::too_many_steps() const {
  return refused(
      format("{} steps of work", steps_.count.load()),
      steps_.most,
      free_steps_,
      kStepsPerByte,
      "Limits::max_steps allows more");
}

Error Budget::too_much_read() const {
  return refused(
      format("{} bytes read, most of them again and again", read_.count.load()),
      read_.most,
      free_bytes_,
      kMadePerByte,
      "Limits::max_made_bytes allows more");
}

std::shared_ptr<Budget> budget_of(const Limits& limits, std::uint64_t bytes) {
  if (limits.budget != nullptr) {
    return limits.budget;
  }
  auto budget = std::make_shared<Budget>(limits);
  budget->add_file(bytes);
  return budget;
}

void add_file(const Limits& limits, std::uint64_t bytes) {
  if (limits.budget != nullptr) {
    limits.budget->add_file(bytes);
  }
}

bool is_spent(const Limits& limits) {
  return limits.budget != nullptr && limits.budget->used() > 1;
}

Limits counting(Limits limits, std::uint64_t bytes) {
  limits.budget = budget_of(limits, bytes);
  return limits;
}

Limits counting(Limits limits, const Checkpoint& file) {
  limits.budget = file.budget;
  return limits;
}

WalkBounds bounds_of(const Limits& limits) {
  return {.max_visits = limits.max_nodes, .budget = limits.budget.get()};
}

} // namespace lockstep::ckpt
