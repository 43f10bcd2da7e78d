// SPDX-License-Identifier: BSD-3-Clause
//
// Work of a device that is recorded once and then repeated as a whole: a CUDA
// graph. The host starts all of its kernels at once, instead of one by one.
//   auto graph = make_device_graph(device);
//   graph->record([&] { outputs = net->forward(inputs); });   // nothing runs
//   inputs.copy_(batch);
//   graph->replay();                       // `outputs` has the batch's numbers
#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// A recording of what a function queues on one device.
///
/// A replay reads and writes the memory that the recording did. So inputs are
/// tensors that the caller keeps and writes into. Tensors that the function
/// made are kept by whoever wants them, and overwritten by each replay; their
/// memory belongs to the graph. What the function does on the host happens
/// once.
///
/// Threads: one at a time, the one that recorded. Work of other threads on the
/// device may go on beside it.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  virtual ~DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  /// Records what `work` queues, once per graph. `work` must have run before
  /// with the same shapes, so that libraries are loaded and have chosen their
  /// algorithms. Random numbers continue from replay to replay as without a
  /// graph. Errors: rethrows what `work` throws; throws kUnsupported if it does
  /// what cannot be recorded, such as waiting for the device (`item()`).
  virtual void record(const std::function<void()>& work) = 0;
  /// Queues the recorded work in the calling thread's current stream.
  virtual void replay() = 0;
};

/// A simulated device has no queue: its graph runs the function at each replay,
/// and not when it is recorded.
/// Errors: throws kUnsupported for the CPU, kUnavailable for a CUDA device if
/// the build knows no CUDA.
std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device);

} // namespace lockstep
#pragma GCC visibility pop
