// SPDX-License-Identifier: BSD-3-Clause
//
// The one file that names LibTorch's CUDAGraph, which is in libtorch_cuda.
#include "lockstep/device/internal/cuda_graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

void order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(first.device_type());
  event.record(first);
  event.block(second);
}

template <class Work>
void ignoring_errors(const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception&) { // the first error is on its way already
  }
}

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(c10::Device device) : device_(device) {}

  void record(const std::function<void()>& work) override {
    // CUDA records no default stream.
    const c10::impl::VirtualGuardImpl impl(device_.type());
    const c10::Stream caller = impl.getStream(device_);
    const c10::Stream stream = impl.getStreamFromGlobalPool(device_);
    order(caller, stream);
    {
      const c10::StreamGuard guard(stream);
      // Other threads, such as those that pin memory for a loader, may call
      // what this one may not.
      graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      try {
        work();
        graph_.capture_end();
      } catch (const c10::Error& error) {
        abandon();
        refuse(error);
      } catch (...) {
        abandon();
        throw;
      }
    }
    order(stream, caller);
  }

  void replay() override {
    graph_.replay();
  }

 private:
  /// LibTorch leaves a capture that failed half open: the allocator goes on to
  /// look for work of it, and the device's generator refuses to draw.
  void abandon() noexcept {
    ignoring_errors([&] { graph_.capture_end(); });
    // Each ends what may be open, and throws if it is not.
    ignoring_errors([&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(
          device_.index(),
          pool_);
      c10::cuda::CUDACachingAllocator::releasePool(device_.index(), pool_);
    });
    ignoring_errors([&] {
      at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
      host->end_allocate_to_pool(pool_);
      host->release_pool(pool_);
    });
    ignoring_errors([&] { // a capture that ends closes the generator's
      at::cuda::CUDAGraph closing;
      closing.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      at::zeros({1}, device_);
      closing.capture_end();
    });
  }

  [[noreturn]] static void refuse(const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "device.graph",
         .message = format(
             "the work cannot be recorded as a CUDA graph: {}",
             text.substr(0, text.find('\n'))),
         .hint = "what waits for the device, such as item() or a condition on "
                 "a tensor, works without a graph only",
         .detail = "E_GRAPH"});
  }

  c10::Device device_;
  c10::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  at::cuda::CUDAGraph graph_;
};

} // namespace

std::unique_ptr<DeviceGraph> make_cuda_graph(c10::Device device) {
  return std::make_unique<CudaGraph>(device);
}

} // namespace lockstep::internal
