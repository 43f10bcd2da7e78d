// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that ends as its argument says, with the error file installed.
#include <array>
#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/launch/error_file.h"

namespace {

using lockstep::ErrorCode;

[[noreturn]] void lose_a_peer() {
  lockstep::raise(
      {.code = ErrorCode::kUnavailable,
       .op = "dist.all_reduce",
       .message = "rank 1 is gone"});
}

void throw_error() {
  throw std::runtime_error("no \"data\"\nin the folder");
}

void touch_nothing() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

void catch_error() {
  try {
    throw_error();
  } catch (const std::exception& error) {
    lockstep::launch::write_error_file(error);
    std::exit(3); // NOLINT(concurrency-mt-unsafe): one thread
  }
}

// What happens after the call keeps the compiler from making it a loop.
int overflow(int depth) {
  volatile int mine = depth;
  const int deeper = mine < 0 ? 0 : overflow(depth + 1);
  return deeper + mine;
}

// As many replicas that run the same forward.
void fail_together(void (*fail)()) {
  constexpr int kThreads = 8;
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      fail();
    });
  }
}

std::atomic<bool> handler_fails = false;

struct Way {
  std::string_view name = {};
  void (*fail)() = nullptr;
};

const std::array kWays{
    Way{"throw", throw_error},
    Way{"throw-int", [] { throw 1; }},
    Way{"peer", [] { lose_a_peer(); }},
    Way{"caught", catch_error},
    Way{"segv", touch_nothing},
    Way{"abort", [] { std::abort(); }},
    Way{"overflow", [] { static_cast<void>(overflow(0)); }},
    Way{"terminate", [] { std::terminate(); }},
    Way{"segv-threads", [] { fail_together(touch_nothing); }},
    Way{"abort-threads", [] { fail_together([] { std::abort(); }); }},
    Way{"throw-threads", [] { fail_together(throw_error); }},
    Way{"segv-in-handler",
        [] {
          handler_fails = true;
          touch_nothing();
        }},
};

} // namespace

// glibc's name of a signal, which the handler asks for: the linker takes this.
extern "C" const char* sigabbrev_np(int number) noexcept {
  if (handler_fails) {
    touch_nothing();
  }
  return number == SIGSEGV ? "SEGV" : "ABRT";
}

int main(int argc, char** argv) {
  lockstep::launch::install_error_file();
  for (const Way& way : kWays) {
    if (argc > 1 && way.name == argv[1]) {
      way.fail();
    }
  }
  return 0;
}
