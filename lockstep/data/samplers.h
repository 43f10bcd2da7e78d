// SPDX-License-Identifier: BSD-3-Clause
//
// In which order the samples of a dataset come, as Python's samplers say it.
// A loader shuffles by itself; what is here is for orders of one's own.
//
// The lists of Python's `BatchSampler`, for programs that put batches together
// themselves, or change them, before a loader reads them.
//   auto batches = make_batches(sampler.indices(), 64);
//   std::ranges::reverse(batches);
//   loader.start_batches(batches, epoch);
//
// The order of Python's `DataLoader(dataset, shuffle=True)`.
//
// The order of an epoch, equal to Python's
// torch.utils.data.distributed.DistributedSampler. Used with one process, too.
//   DistributedSampler sampler(60000); // this rank's share
//   sampler.set_epoch(epoch);
//   loader.start_epoch(sampler.indices(), epoch);
//
// The order of Python's `DataLoader` with a `WeightedRandomSampler`: samples
// with a greater weight come more often.
//   WeightedRandomSampler sampler({0.1, 0.1, 0.8}, 100);
//   loader.start_epoch(sampler.next_epoch(), epoch);
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

/// Numbers of samples, batch by batch.
using IndexBatches = std::vector<std::vector<std::int64_t>>;

/// `indices` in their order, `batch_size` at a time. The last batch may be
/// smaller; with `drop_last` it is left out then.
/// Errors: throws kInvalidArgument with PyTorch's text for a batch size
/// below 1.
IndexBatches make_batches(
    const std::vector<std::int64_t>& indices,
    std::int64_t batch_size,
    bool drop_last = false);

/// Shuffles a dataset from the default generator.
class RandomSampler {
 public:
  /// Units: `dataset_size` in samples.
  /// Errors: throws kInvalidArgument with PyTorch's text for a size below 1.
  explicit RandomSampler(std::int64_t dataset_size);

  /// The order of the next epoch. Draws two int64 from the default generator,
  /// as Python's loader does each epoch; the second seeds the permutation.
  std::vector<std::int64_t> next_epoch();

 private:
  std::int64_t dataset_size_;
};

/// Python's arguments of the same names.
struct DistributedSamplerOptions {
  /// None: those of the job (`job_rank` in base/rank_info.h): of the default
  /// process group, as in Python; without one, what the launcher says; without
  /// a launcher, this process alone, which is a job of one. Python refuses
  /// where there is no group.
  std::optional<std::int64_t> num_replicas = {};
  std::optional<std::int64_t> rank = {};
  bool shuffle = true;
  /// The order of epoch e comes from a generator seeded with seed + e.
  std::int64_t seed = 0;
  /// Cuts the samples that do not divide evenly; otherwise the first samples
  /// are repeated to fill up.
  bool drop_last = false;
  /// Neither: every sample comes once, to one rank, so the first ranks may have
  /// one more than the others. For an evaluation whose sums over all ranks are
  /// exact; not for training, where all ranks make as many steps. Python has no
  /// such option.
  bool exact = false;
};

/// Deals the samples of a dataset to ranks. Without shuffling, as for an
/// evaluation, rank 0 warns when samples are repeated to fill up.
class DistributedSampler {
 public:
  /// Units: `dataset_size` in samples.
  /// Errors: as `job_rank` where that is asked; throws kInvalidArgument with
  /// PyTorch's text for a rank outside the interval, for a size or a number of
  /// replicas out of range, and for `drop_last` with `exact`.
  explicit DistributedSampler(
      std::int64_t dataset_size,
      const DistributedSamplerOptions& options = {});

  /// Call before each epoch, or the order repeats.
  void set_epoch(std::int64_t epoch) {
    epoch_ = epoch;
  }
  [[nodiscard]] std::int64_t epoch() const {
    return epoch_;
  }
  /// Samples of this rank in an epoch (`len(sampler)`).
  [[nodiscard]] std::int64_t size() const {
    return num_samples_;
  }
  /// This rank's samples in order. The default generator is not touched.
  [[nodiscard]] std::vector<std::int64_t> indices() const;

 private:
  std::int64_t dataset_size_;
  std::int64_t num_replicas_;
  std::int64_t rank_;
  DistributedSamplerOptions options_;
  std::int64_t num_samples_ = 0;
  std::int64_t epoch_ = 0;
};

/// Draws samples from the default generator.
class WeightedRandomSampler {
 public:
  /// `weights`: one for each sample of the dataset, need not add up to 1. An
  /// epoch has `num_samples`; without `replacement` each at most once.
  /// Errors: throws kInvalidArgument for weights that are negative or not
  /// finite, and for fewer samples with a weight than an epoch needs.
  explicit WeightedRandomSampler(
      std::vector<double> weights,
      std::int64_t num_samples,
      bool replacement = true);

  /// The order of the next epoch. Draws from the default generator what
  /// Python's loader and sampler draw.
  std::vector<std::int64_t> next_epoch();

 private:
  std::vector<double> weights_;
  std::int64_t num_samples_;
  bool replacement_;
};

} // namespace lockstep
#pragma GCC visibility pop
