// SPDX-License-Identifier: BSD-3-Clause
//
// FashionMNIST through our loader: shuffled, normalised, in batches of 256.
// A round is an epoch; the round "first" goes from the files to a first batch.
//   loader_bench [WORKERS] [augment]
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "bench/serve.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/data/samplers.h"

namespace {

using Clock = std::chrono::steady_clock;
using lockstep::Batch;
using lockstep::Loader;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The sum that peer_data.py makes: every word of every batch counts, weighted
// by the place of the batch. Modulo 2^64.
std::uint64_t checksum(const Batch& batch, std::int64_t place) {
  std::int64_t sum = 0;
  const auto* words =
      static_cast<const std::int32_t*>(batch.images.const_data_ptr());
  for (std::int64_t i = 0; i < batch.images.numel(); ++i) {
    sum += words[i];
  }
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    sum += batch.targets.const_data_ptr<std::int64_t>()[i];
  }
  return static_cast<std::uint64_t>(sum) *
         static_cast<std::uint64_t>(place + 1);
}

// The consumer looks at one number per sample, so that no work is left out.
double touch(const Batch& batch) {
  const auto* images = batch.images.const_data_ptr<float>();
  const std::int64_t numel = batch.images.numel() / batch.size();
  double sum = 0;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    sum += images[i * numel];
  }
  return sum;
}

double first_batch_ms() {
  const auto start = Clock::now();
  Loader loader(lockstep::fashion_mnist(), {.batch_size = 256});
  loader.start_epoch(lockstep::DistributedSampler(60000).indices(), 0);
  const std::optional<Batch> first = loader.next();
  return first && touch(*first) != 0 ? 1e3 * seconds_since(start) : 0;
}

std::uint64_t epoch_checksum(Loader<Batch>& loader) {
  std::uint64_t sum = 0;
  std::int64_t place = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    sum += checksum(*batch, place++);
  }
  return sum;
}

nlohmann::json measure(
    Loader<Batch>& loader,
    const std::vector<std::int64_t>& order) {
  constexpr int kEpochs = 5;
  double touched = 0;
  const auto start = Clock::now();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    loader.start_epoch(order, 0);
    while (const std::optional<Batch> batch = loader.next()) {
      touched += touch(*batch);
    }
  }
  const double seconds = seconds_since(start) / kEpochs;
  return {
      {"images_per_s", static_cast<double>(order.size()) / seconds},
      {"touched", touched / kEpochs}};
}

} // namespace

int main(int argc, char** argv) {
  const std::int64_t workers =
      argc > 1 ? lockstep::parse_number<std::int64_t>(argv[1], 0).value_or(0)
               : 0;
  const bool augments = argc > 2 && std::string_view(argv[2]) == "augment";
  const auto data = lockstep::fashion_mnist(
      "",
      {.transform = {
           .crop_padding = augments ? 4 : 0,
           .horizontal_flip = augments}});
  Loader loader(data, {.batch_size = 256, .workers = workers});
  const auto order = lockstep::DistributedSampler(data->size()).indices();
  loader.start_epoch(order, 0);
  lockstep::bench::serve(
      {{"checksum", std::to_string(epoch_checksum(loader))}},
      [&](const std::string& what) -> nlohmann::json {
        if (what == "first") {
          return {{"first_ms", first_batch_ms()}};
        }
        return measure(loader, order);
      });
}
