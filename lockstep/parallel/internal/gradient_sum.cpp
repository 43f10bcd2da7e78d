// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/gradient_sum.h"

#include <algorithm>
#include <cstdint>

namespace lockstep::parallel {
namespace {

// Below this, waking the workers costs more than the sum itself.
constexpr std::int64_t kMinParallelElements = 65'536;
// Slices begin at multiples of this, so that no two workers share a cache line.
constexpr std::int64_t kAlignElements = 64;

// terms[0] += terms[1] += ...; all the same dense layout.
struct FlatSum {
  std::vector<at::Tensor> terms = {};
  std::int64_t numel = 0;
};

// True if no other tensor can see this gradient's memory. A gradient that went
// through view operations keeps its base alive; it counts if nothing else does.
bool is_owned(const at::Tensor& gradient) {
  if (gradient.use_count() != 1 || !gradient.has_storage() ||
      !gradient.is_non_overlapping_and_dense()) {
    return false;
  }
  const std::size_t holders = gradient.storage().use_count();
  if (!gradient.is_view()) {
    return holders == 1;
  }
  return holders == 2 && gradient._base().use_count() == 1;
}

bool same_dense_layout(const std::vector<at::Tensor>& terms) {
  const at::Tensor& first = terms.front();
  return std::ranges::all_of(terms, [&first](const at::Tensor& t) {
    return t.layout() == at::kStrided && t.is_cpu() &&
           t.is_non_overlapping_and_dense() && t.dtype() == first.dtype() &&
           t.sizes() == first.sizes() && t.strides() == first.strides();
  });
}

at::Tensor flat(const at::Tensor& t, std::int64_t begin, std::int64_t end) {
  return t.as_strided({end - begin}, {1}, t.storage_offset() + begin);
}

// Adds the elements [begin, end) of all sums laid end to end.
void add_slice(
    const std::vector<FlatSum>& sums,
    std::int64_t begin,
    std::int64_t end) {
  std::int64_t start = 0;
  for (const FlatSum& sum : sums) {
    const std::int64_t from = std::max(begin - start, std::int64_t{0});
    const std::int64_t to = std::min(end - start, sum.numel);
    start += sum.numel;
    if (from >= to) {
      continue;
    }
    if (to - from == sum.numel) {
      for (std::size_t i = 1; i < sum.terms.size(); ++i) {
        sum.terms.front().add_(sum.terms[i]);
      }
      continue;
    }
    at::Tensor total = flat(sum.terms.front(), from, to);
    for (std::size_t i = 1; i < sum.terms.size(); ++i) {
      total.add_(flat(sum.terms[i], from, to));
    }
  }
}

void add_all(WorkerPool* pool, const std::vector<FlatSum>& sums) {
  std::int64_t total = 0;
  for (const FlatSum& sum : sums) {
    total += sum.numel;
  }
  if (pool == nullptr || total < kMinParallelElements) {
    add_slice(sums, 0, total);
    return;
  }
  const auto workers = static_cast<std::int64_t>(pool->size());
  const std::int64_t step =
      (total / workers / kAlignElements + 1) * kAlignElements;
  const auto errors = pool->run(pool->size(), [&](std::size_t worker) {
    const std::int64_t begin = step * static_cast<std::int64_t>(worker);
    add_slice(sums, begin, std::min(begin + step, total));
  });
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) {
      std::rethrow_exception(error);
    }
  }
}

} // namespace

std::vector<at::Tensor> sum_in_replica_order(
    WorkerPool* pool,
    std::vector<std::vector<at::Tensor>> gradients) {
  const std::size_t rows = gradients.empty() ? 0 : gradients.front().size();
  std::vector<at::Tensor> totals(rows);
  std::vector<FlatSum> sums;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<at::Tensor> terms;
    for (auto& of_replica : gradients) {
      if (of_replica[row].defined()) {
        terms.push_back(std::move(of_replica[row]));
      }
    }
    if (terms.empty()) {
      continue;
    }
    if (terms.size() > 1 && !is_owned(terms.front())) {
      terms.front() = terms.front().clone();
    }
    if (terms.size() > 1 && same_dense_layout(terms)) {
      totals[row] = terms.front();
      const std::int64_t numel = terms.front().numel();
      sums.push_back({.terms = std::move(terms), .numel = numel});
      continue;
    }
    for (std::size_t i = 1; i < terms.size(); ++i) {
      terms.front().add_(terms[i]);
    }
    totals[row] = std::move(terms.front());
  }
  add_all(pool, sums);
  return totals;
}

std::vector<at::Tensor> sum_on_first_device(
    const GradientSum& with,
    std::vector<std::vector<at::Tensor>> gradients) {
  std::vector<at::Tensor> sums;
  if (with.nccl != nullptr && gradients.size() == with.devices.size()) {
    sums = with.nccl->sum(gradients);
  }
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    Moved moved;
    for (std::size_t row = 0; row < gradients[r].size(); ++row) {
      at::Tensor& gradient = gradients[r][row];
      if (gradient.defined() && gradient.device() != with.devices.front()) {
        ++moved.copies;
        moved.bytes += bytes_of(gradient);
      }
      if (!sums.empty() && sums[row].defined()) {
        gradient.reset();
      } else if (gradient.defined()) {
        gradient = gradient.to(with.devices.front());
      }
    }
    with.traffic.add(Cargo::kGradients, r, moved);
  }
  std::vector<at::Tensor> rest =
      sum_in_replica_order(&with.pool, std::move(gradients));
  for (std::size_t row = 0; row < sums.size(); ++row) {
    if (sums[row].defined()) {
      rest[row] = std::move(sums[row]);
    }
  }
  return rest;
}

} // namespace lockstep::parallel
