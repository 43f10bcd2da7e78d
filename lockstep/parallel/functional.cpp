// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/functional.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/streams.h"
#include "lockstep/parallel/random_stream.h"
#include "lockstep/parallel/replica_error.h"
#include "lockstep/parallel/worker_pool.h"

namespace lockstep::parallel {

std::vector<std::shared_ptr<torch::nn::Module>> replicate_module(
    std::shared_ptr<torch::nn::Module> module,
    std::span<const c10::Device> devices,
    ReplicateOptions options) {
  ReplicaSet set(
      std::move(module),
      {devices.begin(), devices.end()},
      {.factory = std::move(options.factory), .is_connected = !options.detach});
  Traffic uncounted(devices.size());
  set.follow(devices.size(), uncounted);
  return set.modules();
}

void run_on_devices(
    std::size_t tasks,
    std::span<const c10::Device> devices,
    const std::function<void(std::size_t)>& task) {
  if (devices.size() != tasks) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "parallel.parallel_apply",
         .message = format(
             "{} modules and {} devices: expected one device for each",
             tasks,
             devices.size())});
  }
  install_random_streams();
  const auto intra_op =
      std::max(1, at::get_num_threads() / std::max(1, static_cast<int>(tasks)));
  WorkerPool pool(tasks, intra_op);
  const std::vector<c10::Stream> streams = current_streams(devices);
  PassStreams random;
  const auto errors = pool.run(tasks, [&](std::size_t i) {
    const RandomStreamGuard numbers(random, i);
    const c10::StreamGuard stream(streams[i]);
    task(i);
  });
  rethrow_lowest(errors, devices, "parallel.parallel_apply");
}

} // namespace lockstep::parallel
