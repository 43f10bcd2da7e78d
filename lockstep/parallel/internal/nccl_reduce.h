// SPDX-License-Identifier: BSD-3-Clause
//
// Sums tensors of several GPUs of this process with NCCL, which moves them
// along the links between the GPUs. No NCCL or CUDA header is needed to build
// this, no library to link: the one that LibTorch's CUDA build brings is found
// at run time.
//   NcclReduce reduce(parse_devices("cuda:0,1"));
//   TensorList sums = reduce.sum({of_cuda_0, of_cuda_1});   // on cuda:0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace lockstep {

/// Communicators of some devices, made once.
/// Threads: one call at a time.
class NcclReduce {
 public:
  /// Looks for NCCL at LOCKSTEP_NCCL_LIBRARY, then for the library that
  /// LibTorch has loaded, then for libnccl.so.2. Devices of other types than
  /// CUDA work with a library of that variable only (a vendor's, or a test's).
  /// Errors: throws kInvalidArgument for CPU devices or a device named twice,
  /// kUnavailable if there is no NCCL or it refuses the devices.
  explicit NcclReduce(std::span<const c10::Device> devices);
  ~NcclReduce();
  NcclReduce(const NcclReduce&) = delete;
  NcclReduce& operator=(const NcclReduce&) = delete;

  /// For each row the sum of terms[d][row] over all devices d, on the first.
  /// The work is queued in the calling thread's current streams. NCCL chooses
  /// the order of additions. A row stays undefined if NCCL cannot sum it: a
  /// term is undefined, not dense, or has another layout or dtype.
  /// Errors: throws kInternal with NCCL's text.
  std::vector<at::Tensor> sum(
      const std::vector<std::vector<at::Tensor>>& terms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace lockstep
