// SPDX-License-Identifier: BSD-3-Clause
//
// Where ranks do different things.
#include <string>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {
namespace {

/// c10d would wait for good.
void check_other(const char* op, int peer, int tag, const ProcessGroup& group) {
  internal::check_peer(op, peer, group.size());
  if (tag < 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = std::string("dist.") + op,
         .message = format("the tag {} is negative", tag),
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
  if (peer == group.rank()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = std::string("dist.") + op,
         .message = format("rank {} is this rank itself", peer),
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
}

} // namespace

namespace internal {
void check_peer(const char* op, int peer, int size) {
  if (peer < 0 || peer >= size) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = std::string("dist.") + op,
         .message =
             format("rank {} is out of range: the group has {}", peer, size),
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
}
} // namespace internal

std::vector<at::Tensor> ProcessGroup::gather(const at::Tensor& tensor, int dst)
    const {
  internal::check_peer("gather", dst, size());
  if (is_alone()) {
    return all_gather(tensor);
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
    std::vector<at::Tensor> inputs{internal::in_order(tensor)};
    impl().group->gather(outputs, inputs, {.rootRank = dst})->wait();
  });
  return outputs.empty() ? std::vector<at::Tensor>()
                         : std::move(outputs.front());
}

void ProcessGroup::scatter(
    at::Tensor& tensor,
    const std::vector<at::Tensor>& inputs,
    int src) const {
  internal::check_peer("scatter", src, size());
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
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
  if (is_alone()) {
    const at::NoGradGuard no_grad;
    tensor.copy_(inputs.front());
    return;
  }
  impl().collective("scatter", [&] {
    internal::Replaced replaced(tensor);
    std::vector<at::Tensor> outputs = replaced.list();
    std::vector<std::vector<at::Tensor>> lists;
    if (rank() == src) {
      lists.push_back(internal::contiguous(inputs));
    }
    impl().group->scatter(outputs, lists, {.rootRank = src})->wait();
    replaced.write_back();
  });
}

void ProcessGroup::send(const at::Tensor& tensor, int dst, int tag) const {
  check_other("send", dst, tag, *this);
  impl().collective("send", [&] {
    std::vector<at::Tensor> tensors{internal::in_order(tensor)};
    impl().group->send(tensors, dst, tag)->wait();
  });
}

void ProcessGroup::recv(at::Tensor& tensor, int src, int tag) const {
  check_other("recv", src, tag, *this);
  impl().collective("recv", [&] {
    internal::Replaced replaced(tensor);
    std::vector<at::Tensor> tensors = replaced.list();
    impl().group->recv(tensors, src, tag)->wait();
    replaced.write_back();
  });
}

void ProcessGroup::monitored_barrier(
    std::chrono::milliseconds timeout,
    bool wait_all_ranks) const {
  if (is_alone()) {
    return;
  }
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
