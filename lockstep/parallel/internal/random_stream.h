// SPDX-License-Identifier: BSD-3-Clause
//
// A private random stream per replica, so that dropout does not depend on which
// thread runs first.
//
// Note [Replica streams]
// The first random operation of any replica in a pass draws ONE number from the
// default CPU generator, `seed = torch.randint(2**31, ())`; replica i then uses
// a generator seeded with `seed + i`. A pass that draws nothing leaves the
// default generator untouched, so a net without dropout consumes the same
// numbers on one device and on many. Operations that name a generator use it.
//
// Note [Random kernels]
// No module asks for a generator, so replicas get theirs below the modules: the
// first group of several devices, or `parallel_apply`, replaces the 23
// operations of `aten` on the CPU that draw numbers (random_ops.cpp), for the
// whole process (docs/process_state.md). Each calls the kernel it replaced, and
// outside replicas with the caller's own arguments: values and generators keep
// every bit. Four elements on one core of an AMD EPYC, without and with that
// step (medians of 13 processes each that took turns): `uniform_` 137 and 141
// ns, dropout in inference mode 2.11 and 2.13 us.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <ATen/core/Generator.h>

namespace lockstep::parallel {

/// The seeds of one pass over all replicas.
/// Threads: `generator` may be called by all replicas at once.
class PassStreams {
 public:
  /// A fresh generator of replica `index`.
  at::Generator generator(std::size_t index);

 private:
  std::mutex mutex_;
  std::optional<std::uint64_t> seed_ = {};
};

/// While it lives, random CPU operations of this thread that name no generator
/// draw from the stream of replica `index`.
class RandomStreamGuard {
 public:
  RandomStreamGuard(PassStreams& streams, std::size_t index);
  ~RandomStreamGuard();
  RandomStreamGuard(const RandomStreamGuard&) = delete;
  RandomStreamGuard& operator=(const RandomStreamGuard&) = delete;

 private:
  friend std::optional<at::Generator> pick_generator(
      std::optional<at::Generator> given);
  PassStreams& streams_;
  std::size_t index_ = 0;
  std::optional<at::Generator> generator_ = {};
  RandomStreamGuard* outer_ = nullptr;
};

/// `given`, or the stream of this thread's replica, or nothing (the default).
std::optional<at::Generator> pick_generator(std::optional<at::Generator> given);

/// Makes LibTorch's random CPU operations ask `pick_generator`, before the
/// first worker runs; further calls do nothing. Errors: throws kUnsupported
/// (E_OPERATORS) if LibTorch's are others than ours were written for: replicas
/// would share one stream.
void install_random_streams();

/// LibTorch's own operations again. Groups that are alive have no streams then.
/// Threads: while no other thread draws random numbers.
void uninstall_random_streams();

} // namespace lockstep::parallel
