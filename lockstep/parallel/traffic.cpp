// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {

std::uint64_t bytes_of(const at::Tensor& tensor) {
  return tensor.is_sparse()
             ? tensor._indices().nbytes() + tensor._values().nbytes()
             : tensor.nbytes();
}

void Traffic::add(Cargo cargo, std::size_t replica, Moved moved) {
  Count& count = counts_[replica][static_cast<std::size_t>(cargo)];
  count.copies.fetch_add(moved.copies, std::memory_order_relaxed);
  count.bytes.fetch_add(moved.bytes, std::memory_order_relaxed);
}

Moved Traffic::of(Cargo cargo, std::size_t replica) const {
  const Count& count = counts_[replica][static_cast<std::size_t>(cargo)];
  return {.copies = count.copies.load(), .bytes = count.bytes.load()};
}

void Traffic::reset() {
  for (auto& of_replica : counts_) {
    for (Count& count : of_replica) {
      count.copies.store(0);
      count.bytes.store(0);
    }
  }
}

} // namespace lockstep::parallel
