// SPDX-License-Identifier: BSD-3-Clause
//
// How a `Loader` makes batches, and in which order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

/// The order of the samples in each epoch: what a sampler, or a function of the
/// epoch, says.
///   Loader loader(data, {.sampler = DistributedSampler(1000)});
///   Loader loader(data, {.sampler = [](std::int64_t epoch) { ... }});
class SampleOrder {
 public:
  using Indices = std::vector<std::int64_t>;

  /// The loader's own: 0, 1, 2, ..., or shuffled.
  SampleOrder() = default;
  /// A sampler with `indices()`, and `set_epoch(e)` if the order depends on the
  /// epoch; one with `next_epoch()`, which draws an order each time; or what
  /// gives the order when it is called with the epoch.
  /// Ownership: a copy; the order is that of a `shared_ptr`'s sampler, too.
  template <class Sampler>
    requires(!std::is_same_v<std::remove_cvref_t<Sampler>, SampleOrder>)
  // NOLINTNEXTLINE(google-explicit-constructor): stands for any sampler
  SampleOrder(Sampler sampler)
      : draws_(has_next_epoch<Sampler>()),
        of_epoch_([sampler = std::make_shared<Sampler>(std::move(sampler))](
                      std::int64_t epoch) { return order(*sampler, epoch); }) {}

  /// True if the sampler draws its order anew each time, from the default
  /// generator: one with `next_epoch()`.
  [[nodiscard]] bool draws() const {
    return draws_;
  }
  [[nodiscard]] bool is_given() const {
    return of_epoch_ != nullptr;
  }
  [[nodiscard]] Indices of_epoch(std::int64_t epoch) const {
    return of_epoch_(epoch);
  }

 private:
  template <class Sampler>
  static Indices order(Sampler& sampler, std::int64_t epoch) {
    using Own = std::remove_const_t<Sampler>;
    static_assert(
        !std::is_const_v<Sampler> ||
            !requires(Own& own) { own.set_epoch(epoch); },
        "a pointer to a const sampler cannot be told the epoch");
    if constexpr (requires { sampler.indices(); }) {
      if constexpr (requires { sampler.set_epoch(epoch); }) {
        sampler.set_epoch(epoch);
      }
      return sampler.indices();
    } else if constexpr (requires { sampler.next_epoch(); }) {
      return sampler.next_epoch();
    } else if constexpr (requires { sampler(epoch); }) {
      return sampler(epoch);
    } else {
      return order(*sampler, epoch);
    }
  }
  template <class Sampler>
  static consteval bool has_next_epoch() {
    return requires(Sampler& sampler) { sampler.next_epoch(); } ||
           requires(Sampler& sampler) { sampler->next_epoch(); };
  }

  bool draws_ = false;
  std::function<Indices(std::int64_t)> of_epoch_ = {};
};

/// Where a loader is: enough to go on there in another process.
struct LoaderState {
  /// From 0; -1 before the first.
  std::int64_t epoch = -1;
  /// Samples of the epoch that were given out.
  std::int64_t samples = 0;
  /// Of the shuffled order.
  std::int64_t seed = 0;

  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

/// How batches are made.
struct LoaderOptions {
  std::int64_t batch_size = 1;
  /// Threads that prepare batches; 0 prepares each one inside `next`.
  std::int64_t workers = 0;
  /// Batches prepared ahead, per worker (Python's `prefetch_factor`).
  std::int64_t prefetch = 2;
  /// Leaves out the last batch if it is smaller.
  bool drop_last = false;
  /// Batches lie in pinned memory, from which `to(device, non_blocking)` copies
  /// while the host goes on. Without a CUDA device as false.
  bool pin_memory = false;
  /// For `begin`: each epoch has another order, from the default generator, as
  /// in Python. Not with a `sampler`.
  bool shuffle = false;
  /// For `begin`: the order of one's own.
  SampleOrder sampler = {};
};

} // namespace lockstep
