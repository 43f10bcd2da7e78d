// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/operations.h"

#include <atomic>
#include <memory>
#include <utility>

namespace lockstep {
namespace {

/// Observes this thread while it lives.
class Observation {
 public:
  Observation(OperationListener& listener, const ObserveOptions& options)
      : listener_(listener),
        outer_(std::exchange(current, this)),
        is_of_backward_(options.has_backward_threads),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_start, on_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes(
                    {at::RecordScope::FUNCTION,
                     at::RecordScope::BACKWARD_FUNCTION}))) {
    if (is_of_backward_) {
      of_backward = this;
    }
  }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;
  ~Observation() {
    at::removeCallback(handle_);
    current = outer_;
    if (is_of_backward_) {
      of_backward = nullptr;
    }
  }

 private:
  // Callbacks are plain functions. Null in other threads, which take them over
  // with the rest of the thread's state: those of replicas, of backward passes.
  static thread_local Observation* current;
  // For those of backward passes, while their caller waits.
  static std::atomic<Observation*> of_backward;

  static Observation* here() {
    return current != nullptr ? current : of_backward.load();
  }

  static std::unique_ptr<at::ObserverContext> on_start(
      const at::RecordFunction& op) {
    if (Observation* const observer = here()) {
      observer->listener_.on_start(op, observer->depth_++);
    }
    return nullptr;
  }

  static void on_end(const at::RecordFunction& op, at::ObserverContext*) {
    // 0: of an operation that began before
    Observation* const observer = here();
    if (observer != nullptr && observer->depth_ > 0) {
      observer->listener_.on_end(op, --observer->depth_);
    }
  }

  OperationListener& listener_;
  Observation* outer_;
  bool is_of_backward_;
  int depth_ = 0;
  at::CallbackHandle handle_; // last: from now on it is called
};

thread_local Observation* Observation::current = nullptr;
std::atomic<Observation*> Observation::of_backward = nullptr;

} // namespace

void observe_operations(
    OperationListener& listener,
    const std::function<void()>& work,
    const ObserveOptions& options) {
  const Observation observation(listener, options);
  work();
}

} // namespace lockstep
