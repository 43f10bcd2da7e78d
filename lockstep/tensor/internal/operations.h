// SPDX-License-Identifier: BSD-3-Clause
//
// The operations of a piece of work, as the dispatcher sees them.
#pragma once

#include <functional>

#include <ATen/record_function.h>

namespace lockstep {

/// Is told of the operations of a thread as they start and end.
class OperationListener {
 public:
  OperationListener() = default;
  OperationListener(const OperationListener&) = delete;
  OperationListener& operator=(const OperationListener&) = delete;
  virtual ~OperationListener() = default;

  /// `op` has its inputs. `depth`: inside how many operations it runs; 0 for
  /// what a module or a function called.
  virtual void on_start(const at::RecordFunction& op, int depth) = 0;
  /// `op` has its outputs, and its inputs no longer.
  virtual void on_end(const at::RecordFunction& op, int depth) = 0;
};

struct ObserveOptions {
  /// Those of autograd's threads, too, in which the backward passes of other
  /// devices than the CPU run, while this one waits. `work` may start no other
  /// threads then, and one thread of the process does this at a time.
  bool has_backward_threads = false;
};

/// Runs `work` and tells `listener` of the operations of this thread, among
/// them the nodes of autograd (RecordScope::BACKWARD_FUNCTION). Those of
/// threads that it starts, such as the replicas of a DataParallel, are left
/// out. Errors: throws what `work` throws.
void observe_operations(
    OperationListener& listener,
    const std::function<void()>& work,
    const ObserveOptions& options = {});

} // namespace lockstep
