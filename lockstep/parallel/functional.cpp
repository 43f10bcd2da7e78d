// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/functional.h"

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/internal/streams.h"
#include "lockstep/parallel/internal/random_stream.h"
#include "lockstep/parallel/internal/replica_set.h"
#include "lockstep/parallel/internal/turns.h"
#include "lockstep/parallel/internal/worker_pool.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::parallel {
namespace {

using Module = torch::nn::Module;

// Owns a replica that holds what its module was given, and goes with every
// pointer to it: Note [What a module was given] in modules.h.
struct GivenReplica {
  std::shared_ptr<Module> module;
  StandIns stand_ins;
  bool shares_children;

  void operator()(const Module* /*replica*/) {
    module.reset();
  }
};

} // namespace

std::vector<std::shared_ptr<torch::nn::Module>> replicate_module(
    std::shared_ptr<torch::nn::Module> module,
    std::span<const c10::Device> devices,
    ReplicateOptions options) {
  ReplicaSet set(
      std::move(module),
      {devices.begin(), devices.end()},
      {.factory = std::move(options.factory),
       .connected_graph = !options.detach});
  Traffic uncounted(devices.size());
  set.follow(devices.size(), uncounted);
  std::vector<std::shared_ptr<Module>> replicas = set.modules();
  for (std::size_t i = 1; i < replicas.size(); ++i) {
    GivenReplica given{replicas[i], set.stand_ins(i), set.shares_children()};
    if (given.shares_children || !given.stand_ins.empty()) {
      Module* const replica = replicas[i].get();
      replicas[i] = std::shared_ptr<Module>(replica, std::move(given));
    }
  }
  return replicas;
}

void run_on_devices(
    std::span<const std::shared_ptr<Module>> modules,
    std::span<const c10::Device> devices,
    const std::function<void(std::size_t)>& task) {
  const std::size_t tasks = modules.size();
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
  const auto given = [&modules](std::size_t i) {
    return std::get_deleter<GivenReplica>(modules[i]);
  };
  bool in_order = false;
  for (std::size_t i = 0; i < tasks; ++i) {
    in_order = in_order || (given(i) != nullptr && given(i)->shares_children);
  }
  Turns turns(in_order);
  const StandIns none;
  const auto errors = pool.run(tasks, [&](std::size_t i) {
    const Turns::Mine turn(turns, i);
    const StandInGuard own(given(i) == nullptr ? none : given(i)->stand_ins);
    const RandomStreamGuard numbers(random, i);
    const c10::StreamGuard stream(streams[i]);
    task(i);
  });
  rethrow_lowest(errors, devices, "parallel.parallel_apply");
}

} // namespace lockstep::parallel
