// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/timed_store.h"

#include <latch>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/error.h"

namespace lockstep::dist::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// Keeps those who ask for a number waiting until `goes_on`, as a process does
/// that is stopped.
class StoppedStore final : public c10d::HashStore {
 public:
  std::int64_t getNumKeys() override {
    goes_on.wait();
    return c10d::HashStore::getNumKeys();
  }
  std::latch goes_on{1};
};

/// Says how many calls its thread has made.
class CountingStore final : public c10d::HashStore {
 public:
  std::int64_t getNumKeys() override {
    thread_local std::int64_t calls = 0;
    return ++calls;
  }
};

template <class Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.error();
  }
  return {.message = "no error"};
}

TEST(TimedStore, ACallThatDoesNotEndIsLeftBehind) {
  const auto stopped = c10::make_intrusive<StoppedStore>();
  const c10::intrusive_ptr<c10d::Store> store =
      timed_store("the store of rank 0", milliseconds(1), [stopped] {
        return c10::intrusive_ptr<c10d::Store>(stopped);
      });
  store->set("key", std::string("value"));
  EXPECT_EQ(store->get_to_str("key"), "value");

  const Error error = error_of([&] { store->getNumKeys(); });
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_EQ(error.detail, "E_RANKS_LATE");
  EXPECT_THAT(
      error.message,
      HasSubstr("the store of rank 0 does not answer; it has not for 1.0 s"));
  EXPECT_THAT(
      error_of([&] { store->check({"key"}); }).message,
      HasSubstr("an earlier call still waits"));

  stopped->goes_on.count_down();
  while (!error_of([&] { store->check({"key"}); }).op.empty()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(store->getNumKeys(), 1);
}

TEST(TimedStore, CallsOneAfterAnotherShareAThread) {
  const auto store = timed_store("the store", std::chrono::minutes(10), [] {
    return c10::intrusive_ptr<c10d::Store>(
        c10::make_intrusive<CountingStore>());
  });
  for (const std::int64_t call : {1, 2, 3}) {
    EXPECT_EQ(store->getNumKeys(), call);
  }
}

// One thread waits for what another one sets.
TEST(TimedStore, CallsOfSeveralThreadsRunAtTheSameTime) {
  const auto store = timed_store("the store", std::chrono::minutes(10), [] {
    return c10::intrusive_ptr<c10d::Store>(
        c10::make_intrusive<c10d::HashStore>());
  });
  const std::jthread waits([&] {
    store->wait({"first"});
    store->set("second", std::string("2"));
  });
  const std::jthread sets([&] { store->set("first", std::string("1")); });
  EXPECT_EQ(store->get_to_str("second"), "2");
}

TEST(TimedStore, WhatMakesItMayNotEndEither) {
  const auto never = std::make_shared<std::latch>(1);
  const Error error = error_of([&] {
    timed_store("the store", milliseconds(1), [never] {
      never->wait();
      return c10::make_intrusive<c10d::HashStore>();
    });
  });
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  never->count_down(); // its thread ends
}

} // namespace
} // namespace lockstep::dist::internal
