// SPDX-License-Identifier: BSD-3-Clause
//
// From a store to a group. Stores and names are nested as Python's
// torch.distributed (2.13) nests them for its default group; a rank that nests
// otherwise does not find the others.
#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/distributed/group/choose_backend.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/tensor/internal/compat.h"

namespace lockstep::dist::internal {
namespace {

/// Python counts its groups from here.
constexpr const char* kFirstGroup = "0";

c10::intrusive_ptr<c10d::Store> nested(
    const std::string& prefix,
    const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

/// In a fork nothing ends with a group: its threads, its connections and the
/// memory that the ranks share are the parent's.
class EndInItsProcess {
 public:
  void operator()(ProcessGroup::Impl* impl) const {
    std::unique_ptr<ProcessGroup::Impl> group(impl);
    if (::getpid() != owner_) {
      static_cast<void>(group.release());
    }
  }

 private:
  pid_t owner_ = ::getpid();
};

std::shared_ptr<ProcessGroup::Impl> new_impl() {
  return {std::make_unique<ProcessGroup::Impl>().release(), EndInItsProcess()};
}

/// What must be equal for the ranks to understand each other.
std::string versions(const std::string& backend) {
  return format(
      "Lockstep {}, LibTorch {}{}",
      kVersion,
      torch_library_version(),
      backend.empty() ? "" : ", backend " + backend);
}

void check_versions(
    ProcessGroup::Impl& impl,
    const std::string& backend,
    std::string_view op) {
  const auto texts = exchange(impl, "versions", versions(backend), op);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] != texts.front()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = std::string(op),
           .message = format(
               "the ranks differ; rank 0: {}; rank {}: {}",
               texts.front(),
               rank,
               escape(texts[rank])),
           .hint = "install the same wheel and the same Lockstep everywhere, "
                   "and ask for the same backend",
           .detail = "E_RANKS_DIFFER"});
    }
  }
}

/// Connects the ranks that meet at `place`. `impl` has a store and a recorder.
void set_up(
    ProcessGroup::Impl& impl,
    const GroupPlace& place,
    const InitOptions& options) {
  const BackendChoice wanted = choose_backend(options);
  impl.timeout = options.timeout;
  impl.has_python_ranks = options.has_python_ranks;
  impl.options = options;
  impl.ranks = place.ranks;
  const bool is_sub_group = place.name != kFirstGroup;
  const std::string_view op = is_sub_group ? "dist.new_group" : kInit;
  const auto of_group = nested(format("{}/", place.name), place.store);
  impl.group = c10::make_intrusive<c10d::ProcessGroup>(
      of_group,
      place.rank,
      static_cast<int>(place.ranks.size()));
  if (!options.has_python_ranks) {
    check_versions(impl, wanted.text(), op);
    impl.recorder->peers().attach(); // while the store is sure to be there
  }
  connect(
      impl,
      wanted,
      {.store = of_group,
       .group_name = place.name,
       .is_sub_group = is_sub_group,
       .exchange = [&](const std::string& key, const std::string& text) {
         return exchange(impl, key, text, op);
       }});
  impl.recorder->peers().attach();
  impl.group->setGroupName(place.name);
  impl.group->setGroupDesc(is_sub_group ? "undefined" : "default_pg");
}

} // namespace

ProcessGroup make_group(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const InitOptions& options) {
  static_cast<void>(choose_backend(options)); // before anything waits
  store->setTimeout(options.timeout);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto impl = new_impl();
  impl->store = nested("default_pg", store);
  impl->path = std::string(kFirstGroup); // GCC 12 warns of an assignment
  impl->recorder = std::make_shared<FlightRecorder>(rank, size, impl->store);
  set_up(
      *impl,
      {.store = impl->store,
       .rank = rank,
       .ranks = std::move(ranks),
       .name = kFirstGroup},
      options);
  return ProcessGroup(std::move(impl));
}

ProcessGroup make_sub_group(
    const ProcessGroup::Impl& parent,
    const GroupPlace& place,
    const InitOptions& options) {
  auto impl = new_impl();
  impl->store = nested(format("{}/", place.name), place.store);
  impl->path = format("{}/{}", parent.path, place.name);
  impl->recorder = parent.recorder;
  set_up(*impl, place, options);
  return ProcessGroup(std::move(impl));
}

} // namespace lockstep::dist::internal
