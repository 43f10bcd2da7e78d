// SPDX-License-Identifier: BSD-3-Clause
//
// From a store to a group. Stores and names are nested as Python's
// torch.distributed (2.13) nests them for its default group; a rank that nests
// otherwise does not find the others.
#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/dist/internal/gloo_backend.h"
#include "lockstep/dist/internal/group_impl.h"
#include "lockstep/tensor/compat.h"

namespace lockstep::dist::internal {
namespace {

/// Python counts its groups from here.
constexpr const char* kFirstGroup = "0";

c10::intrusive_ptr<c10d::Store> nested(
    const std::string& prefix,
    const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

void check_backend(const std::string& name) {
  if (name == "gloo") {
    return;
  }
  if (name == "nccl") {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "dist.init",
         .message = "Distributed package doesn't have NCCL built in",
         .hint = "use the backend gloo",
         .detail = "E_BACKEND"});
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.init",
       .message = format("unknown backend '{}'", escape(name)),
       .hint = "gloo",
       .detail = "E_BACKEND"});
}

std::string key_of(const std::string& key, int rank) {
  return format("lockstep/{}/{}", key, rank);
}

/// Ranks whose text is not there; nothing if the store does not answer.
std::optional<std::vector<std::string>> late_ranks(
    ProcessGroup::Impl& impl,
    const std::string& key) {
  std::vector<std::string> late;
  try {
    for (int rank = 0; rank < impl.group->getSize(); ++rank) {
      if (!impl.store->check({key_of(key, rank)})) {
        late.push_back(std::to_string(rank));
      }
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return late;
}

[[noreturn]] void raise_not_all_came(
    ProcessGroup::Impl& impl,
    const std::string& key) {
  const int rank = impl.group->getRank();
  const auto late = late_ranks(impl, key);
  if (!late) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "dist.init",
         .message = format(
             "rank {} waited for the others, and the store does not answer any "
             "more",
             rank),
         .hint = "the process that holds it, mostly rank 0, has ended: see its "
                 "output first",
         .detail = "E_RANKS_LATE"});
  }
  raise(
      {.code = ErrorCode::kTimeout,
       .op = "dist.init",
       .message = format(
           "rank {} waited {} s for rank{} {}",
           rank,
           static_cast<double>(impl.timeout.count()) / 1000.0,
           late->size() == 1 ? "" : "s",
           join(*late, ", ")),
       .hint = "they did not start, have ended, or do something else",
       .detail = "E_RANKS_LATE"});
}

/// Rank 0, which may hold the store, leaves last: if it ended at once, the
/// others would find no store instead of what they are to read.
void leave(ProcessGroup::Impl& impl, const std::string& key) {
  const std::string all_have_read = format("lockstep/{}/read", key);
  const std::int64_t readers =
      impl.store->add(format("lockstep/{}/readers", key), 1);
  if (readers == impl.group->getSize()) {
    impl.store->set(all_have_read, std::vector<std::uint8_t>{1});
  }
  if (impl.group->getRank() != 0) {
    return;
  }
  try {
    impl.store->wait({all_have_read}, impl.timeout);
  } catch (const std::exception&) {
    // A rank has ended meanwhile; the next collective says so.
  }
}

/// Versions that must be equal for the ranks to understand each other.
std::string versions() {
  return format("Lockstep {}, LibTorch {}", kVersion, torch_library_version());
}

void check_versions(ProcessGroup::Impl& impl) {
  const auto texts = exchange(impl, "versions", versions());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] != texts.front()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "dist.init",
           .message = format(
               "the ranks have different versions; rank 0: {}; rank {}: {}",
               texts.front(),
               rank,
               escape(texts[rank])),
           .hint = "install the same wheel and the same Lockstep everywhere",
           .detail = "E_RANKS_DIFFER"});
    }
  }
}

} // namespace

std::vector<std::string> exchange(
    ProcessGroup::Impl& impl,
    const std::string& key,
    const std::string& text) {
  const int rank = impl.group->getRank();
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  impl.store->set(key_of(key, rank), bytes);
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(impl.group->getSize()));
  for (int other = 0; other < impl.group->getSize(); ++other) {
    keys.push_back(key_of(key, other));
  }
  try {
    impl.store->wait(keys, impl.timeout);
  } catch (const std::exception&) {
    raise_not_all_came(impl, key);
  }
  std::vector<std::string> texts;
  for (const std::string& name : keys) {
    const auto value = impl.store->get(name);
    texts.emplace_back(value.begin(), value.end());
  }
  leave(impl, key);
  return texts;
}

ProcessGroup make_group(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const InitOptions& options) {
  check_backend(options.backend);
  store->setTimeout(options.timeout);
  auto impl = std::make_shared<ProcessGroup::Impl>();
  impl->store = nested("default_pg", store);
  impl->timeout = options.timeout;
  impl->has_python_ranks = options.has_python_ranks;
  const auto of_group = nested(format("{}/", kFirstGroup), impl->store);
  impl->group = c10::make_intrusive<c10d::ProcessGroup>(of_group, rank, size);
  if (!options.has_python_ranks) {
    check_versions(*impl);
  }
  impl->collective("init", [&] {
    using BackendType = c10d::ProcessGroup::BackendType;
    const auto gloo = gloo_backend(
        nested("cpu/", of_group),
        rank,
        size,
        {.timeout = options.timeout, .group_name = kFirstGroup});
    impl->group->setDefaultBackend(BackendType::GLOO);
    for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
      impl->group->setBackend(device, BackendType::GLOO, gloo);
    }
    impl->group->setGroupName(kFirstGroup);
    impl->group->setGroupDesc("default_pg");
  });
  if (!options.has_python_ranks) {
    // Until here Gloo has read from the store, too.
    exchange(*impl, "connected", "");
  }
  return ProcessGroup(std::move(impl));
}

} // namespace lockstep::dist::internal
