// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels in CUDA C++ that the program compiles for its GPU when it first needs
// them. The compiler (NVRTC) and the driver are those that LibTorch's CUDA
// build brings: no CUDA header is needed to build this, and nothing to link.
//   GpuProgram program(source);
//   program.launch("twice", device, {.columns = 4}, x.data_ptr(), n);
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <c10/core/Device.h>

namespace lockstep::kernels {

/// How many blocks, and how many threads in each.
struct GpuGrid {
  unsigned columns = 1;
  unsigned rows = 1;
  unsigned threads_x = 1;
  unsigned threads_y = 1;
};

/// Threads: any.
class GpuProgram {
 public:
  /// `source`: kernels that are `extern "C"`.
  explicit GpuProgram(std::string source) : source_(std::move(source)) {}

  /// Queues a kernel in the calling thread's current stream of `device`, after
  /// compiling the program for its kind of GPU once. `arguments`: pointers and
  /// numbers of exactly the types of the kernel's parameters.
  /// Errors: throws kUnavailable if the compiler or the driver cannot be found
  /// or refuse; kInternal if the launch fails.
  template <class... Arguments>
  void launch(
      const char* kernel,
      c10::Device device,
      const GpuGrid& grid,
      Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> places{
        static_cast<void*>(&arguments)...};
    launch_with(kernel, device, grid, places);
  }

  /// The machine code for GPUs of a compute capability, 90 for 9.0; for one
  /// that is newer than the compiler what the driver translates (PTX). Needs no
  /// GPU. Errors: throws kUnavailable.
  static std::string compile(const std::string& source, int capability);

 private:
  void launch_with(
      const char* kernel,
      c10::Device device,
      const GpuGrid& grid,
      std::span<void*> arguments);
  void* function(const char* kernel, c10::DeviceIndex device);

  const std::string source_;
  std::mutex mutex_; // guards the following
  /// Compiled code by compute capability, loaded for all devices.
  std::map<int, void*> libraries_;
  std::map<std::pair<c10::DeviceIndex, std::string>, void*> functions_;
};

} // namespace lockstep::kernels
