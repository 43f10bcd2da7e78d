// SPDX-License-Identifier: BSD-3-Clause
//
// Where ranks do different things.
#include <string>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/dist/internal/group_impl.h"
#include "lockstep/dist/process_group.h"

namespace lockstep::dist {
namespace {

void check_peer(const char* op, int peer, int size) {
  if (peer < 0 || peer >= size) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = std::string("dist.") + op,
         .message =
             format("rank {} is out of range: the group has {}", peer, size),
         .detail = "E_COLLECTIVE"});
  }
}

/// Shared memory has what all ranks do together.
bool is_shared_memory(const std::string& backend) {
  return backend == "shm";
}

void check_has(const std::string& backend, const char* op) {
  if (is_shared_memory(backend)) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = std::string("dist.") + op,
         .message = format("the backend {} has no {}", backend, op),
         .hint = "choose InitOptions::backend \"gloo\"",
         .detail = "E_BACKEND"});
  }
}

} // namespace

std::vector<at::Tensor> ProcessGroup::gather(const at::Tensor& tensor, int dst)
    const {
  check_peer("gather", dst, size());
  if (is_shared_memory(impl().backend)) {
    auto all = all_gather(tensor);
    return rank() == dst ? std::move(all) : std::vector<at::Tensor>();
  }
  std::vector<std::vector<at::Tensor>> outputs;
  if (rank() == dst) {
    outputs.emplace_back();
    for (int i = 0; i < size(); ++i) {
      outputs.front().push_back(
          at::empty_like(tensor, at::MemoryFormat::Contiguous));
    }
  }
  impl().collective("gather", [&] {
    std::vector<at::Tensor> inputs{tensor.contiguous()};
    impl().group->gather(outputs, inputs, {.rootRank = dst})->wait();
  });
  return outputs.empty() ? std::vector<at::Tensor>()
                         : std::move(outputs.front());
}

void ProcessGroup::scatter(
    at::Tensor& tensor,
    const std::vector<at::Tensor>& inputs,
    int src) const {
  check_peer("scatter", src, size());
  const std::size_t expected =
      rank() == src ? static_cast<std::size_t>(size()) : 0;
  if (inputs.size() != expected) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.scatter",
         .message = format(
             "rank {} gives {} tensors, expected {}: rank {} gives one for "
             "each rank, the others none",
             rank(),
             inputs.size(),
             expected,
             src),
         .detail = "E_COLLECTIVE"});
  }
  if (is_shared_memory(impl().backend)) {
    const std::vector<at::Tensor> places(
        static_cast<std::size_t>(size()),
        tensor);
    at::Tensor all = at::stack(rank() == src ? inputs : places);
    broadcast(all, src);
    tensor.copy_(all[rank()]);
    return;
  }
  impl().collective("scatter", [&] {
    std::vector<at::Tensor> outputs{tensor};
    std::vector<std::vector<at::Tensor>> lists;
    if (rank() == src) {
      lists.push_back(inputs);
    }
    impl().group->scatter(outputs, lists, {.rootRank = src})->wait();
  });
}

void ProcessGroup::send(const at::Tensor& tensor, int dst, int tag) const {
  check_has(impl().backend, "send");
  check_peer("send", dst, size());
  impl().collective("send", [&] {
    std::vector<at::Tensor> tensors{tensor.contiguous()};
    impl().group->send(tensors, dst, tag)->wait();
  });
}

void ProcessGroup::recv(at::Tensor& tensor, int src, int tag) const {
  check_has(impl().backend, "recv");
  check_peer("recv", src, size());
  impl().collective("recv", [&] {
    std::vector<at::Tensor> tensors{tensor};
    impl().group->recv(tensors, src, tag)->wait();
  });
}

void ProcessGroup::monitored_barrier(
    std::chrono::milliseconds timeout,
    bool wait_all_ranks) const {
  check_has(impl().backend, "monitored_barrier");
  impl().collective("monitored_barrier", [&] {
    c10d::BarrierOptions options;
    options.timeout = timeout.count() > 0 ? timeout : impl().timeout;
    try {
      impl().group->monitoredBarrier(options, wait_all_ranks);
    } catch (const c10::Error& error) {
      raise(
          {.code = ErrorCode::kTimeout,
           .op = "dist.monitored_barrier",
           .message = error.what_without_backtrace(),
           .hint = "see the output of the ranks that are named first",
           .detail = "E_COLLECTIVE"});
    }
  });
}

} // namespace lockstep::dist
