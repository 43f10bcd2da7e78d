// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/monitored_barrier.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::dist::shm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Of messages that are no user's.
constexpr int kTag = -2;

Partner partner(int rank, milliseconds timeout) {
  return {.rank = rank, .tag = kTag, .timeout = timeout};
}

void report_to_first(const Place& place, milliseconds timeout) {
  try {
    place.communicator.send(partner(0, timeout), {});
    place.communicator.receive(partner(0, timeout), {});
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(format(
        "[Rank {}]: Rank {} successfully reached monitoredBarrier, but "
        "received errors while waiting for send/recv from rank 0. Please check "
        "rank 0 logs for faulty rank.\nOriginal exception: {}",
        place.rank,
        place.rank,
        error.what()));
  }
}

std::vector<std::string>
late_ranks(const Place& place, milliseconds timeout, bool wait_all) {
  const auto end = Clock::now() + timeout;
  std::vector<std::string> late;
  for (int rank = 1; rank < place.size && (late.empty() || wait_all); ++rank) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (!place.communicator.expects(partner(rank, left))) {
      late.push_back(std::to_string(rank));
    }
  }
  return late;
}

} // namespace

void monitored_barrier(
    const Place& place,
    milliseconds timeout,
    bool wait_all) {
  if (place.rank != 0) {
    report_to_first(place, timeout);
    return;
  }
  const auto late = late_ranks(place, timeout, wait_all);
  if (!late.empty()) {
    place.communicator.abort(); // the others need not wait
    throw std::runtime_error(format(
        "[Rank 0]: Rank{} {} failed to pass monitoredBarrier in {} ms",
        late.size() == 1 ? "" : "s",
        join(late, ", "),
        timeout.count()));
  }
  for (int rank = 1; rank < place.size; ++rank) {
    place.communicator.receive(partner(rank, timeout), {});
    place.communicator.send(partner(rank, timeout), {});
  }
}

} // namespace lockstep::dist::shm
