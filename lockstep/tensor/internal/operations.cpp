// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/operations.h"

#include <memory>
#include <utility>

namespace lockstep {
namespace {

/// Observes this thread while it lives.
class Observation {
 public:
  explicit Observation(OperationListener& listener)
      : listener_(listener),
        outer_(std::exchange(current, this)),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_start, on_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes(
                    {at::RecordScope::FUNCTION,
                     at::RecordScope::BACKWARD_FUNCTION}))) {}
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;
  ~Observation() {
    at::removeCallback(handle_);
    current = outer_;
  }

 private:
  // Callbacks are plain functions. Null in other threads, which take them over
  // with the rest of the thread's state: those of replicas, of backward passes.
  static thread_local Observation* current;

  static std::unique_ptr<at::ObserverContext> on_start(
      const at::RecordFunction& op) {
    if (current != nullptr) {
      current->listener_.on_start(op, current->depth_++);
    }
    return nullptr;
  }

  static void on_end(const at::RecordFunction& op, at::ObserverContext*) {
    // 0: of an operation that began before
    if (current != nullptr && current->depth_ > 0) {
      current->listener_.on_end(op, --current->depth_);
    }
  }

  OperationListener& listener_;
  Observation* outer_;
  int depth_ = 0;
  at::CallbackHandle handle_; // last: from now on it is called
};

thread_local Observation* Observation::current = nullptr;

} // namespace

void observe_operations(
    OperationListener& listener,
    const std::function<void()>& work) {
  const Observation observation(listener);
  work();
}

} // namespace lockstep
