// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/fake_nccl.h"

#include <cstddef>
#include <span>
#include <utility>

#define FAKE_NCCL_EXPORT extern "C" [[gnu::visibility("default")]]

namespace lockstep::test {
namespace {

constexpr int kInvalidArgument = 4;
constexpr int kFloat = 7;

struct Communicator {
  int rank = 0;
  int size = 0;
};

struct Reduction {
  const Communicator* communicator = nullptr;
  std::span<const float> from = {};
  float* to = nullptr;
};

FakeNccl& state() {
  static FakeNccl instance;
  return instance;
}

std::vector<Reduction>& open_group() {
  static std::vector<Reduction> reductions;
  return reductions;
}

// One reduction: the calls of all ranks, the root's first.
void sum(std::span<const Reduction> calls) {
  for (std::size_t i = 0; i < calls.front().from.size(); ++i) {
    float total = 0;
    for (const Reduction& call : calls) {
      total += call.from[i];
    }
    calls.front().to[i] = total;
  }
}

} // namespace
} // namespace lockstep::test

using lockstep::test::Communicator;
using lockstep::test::open_group;
using lockstep::test::state;

// NOLINTBEGIN(readability-identifier-naming,readability-function-size): NCCL's

FAKE_NCCL_EXPORT lockstep::test::FakeNccl* fake_nccl() {
  return &state();
}

FAKE_NCCL_EXPORT const char* ncclGetErrorString(int status) {
  return status == lockstep::test::kInvalidArgument ? "invalid argument"
                                                    : "unhandled cuda error";
}

FAKE_NCCL_EXPORT int
ncclCommInitAll(void** communicators, int count, const int* /*devices*/) {
  for (int rank = 0; rank < count; ++rank) {
    communicators[rank] = new Communicator{.rank = rank, .size = count};
  }
  state().communicators += count;
  return 0;
}

FAKE_NCCL_EXPORT int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  --state().communicators;
  return 0;
}

FAKE_NCCL_EXPORT int ncclGroupStart() {
  open_group().clear();
  state().streams.clear();
  ++state().groups;
  return 0;
}

FAKE_NCCL_EXPORT int ncclReduce(
    const void* from,
    void* to,
    std::size_t count,
    int type,
    int operation,
    int root,
    void* communicator,
    void* stream) {
  const auto* const rank = static_cast<Communicator*>(communicator);
  const bool is_root = rank->rank == root;
  if (type != lockstep::test::kFloat || operation != 0 ||
      is_root != (to != nullptr)) {
    return lockstep::test::kInvalidArgument;
  }
  open_group().push_back(
      {.communicator = rank,
       .from = {static_cast<const float*>(from), count},
       .to = static_cast<float*>(to)});
  state().streams.push_back(reinterpret_cast<std::uintptr_t>(stream));
  ++state().reductions;
  return 0;
}

FAKE_NCCL_EXPORT int ncclGroupEnd() {
  const auto group = std::exchange(open_group(), {});
  for (std::size_t i = 0; i < group.size();) {
    const auto ranks = static_cast<std::size_t>(group[i].communicator->size);
    if (i + ranks > group.size()) {
      return lockstep::test::kInvalidArgument; // NCCL itself would hang
    }
    lockstep::test::sum(std::span(group).subspan(i, ranks));
    i += ranks;
  }
  return std::exchange(state().fails_with, 0);
}

// NOLINTEND(readability-identifier-naming,readability-function-size)
