// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures in folders through our loader, in batches of 64. A round is an
// epoch.
//   image_bench FOLDER WORKERS train   RandomResizedCrop(224), flip, normalise
//   image_bench FOLDER WORKERS test    Resize(224), CenterCrop(224), normalise
//   image_bench FOLDER WORKERS test ram   the same from a cache; also `disk`
#include <chrono>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/serve.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"

namespace {

using lockstep::ImageCache;

lockstep::ImageFolderOptions options_for(
    std::string_view kind,
    std::string_view cache) {
  lockstep::ImageFolderOptions options{.size = 224};
  if (kind == "train") {
    options.augment = lockstep::named_augment("standard");
  }
  options.cache = cache == "ram"    ? ImageCache::kRam
                  : cache == "disk" ? ImageCache::kDisk
                                    : ImageCache::kNone;
  return options;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  const auto data = lockstep::image_folder(
      argv[1],
      options_for(argv[3], argc > 4 ? argv[4] : ""));
  const auto workers = lockstep::parse_number<std::int64_t>(argv[2], 0);
  lockstep::Loader loader(
      data,
      {.batch_size = 64, .workers = workers.value_or(0)});
  std::vector<std::int64_t> order(static_cast<std::size_t>(data->size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::int64_t epoch = 0;
  const auto run_round = [&](const std::string&) -> nlohmann::json {
    const auto start = std::chrono::steady_clock::now();
    double sum = 0;
    loader.start_epoch(order, epoch++);
    while (const std::optional<lockstep::Batch> batch = loader.next()) {
      sum += batch->images.mean().item<double>() *
             static_cast<double>(batch->size());
    }
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    const auto count = static_cast<double>(order.size());
    return {{"images_per_s", count / elapsed.count()}, {"mean", sum / count}};
  };
  lockstep::bench::serve({{"mean", run_round("")["mean"]}}, run_round);
}
