// SPDX-License-Identifier: BSD-3-Clause
//
// Ours, for bench/peer_ckpt.py: loads the peer's file, then saves it and loads
// it again, adding up every 32-bit word.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "bench/serve.h"
#include "lockstep/ckpt/load.h"

namespace {

using lockstep::ckpt::Checkpoint;
using lockstep::ckpt::Dict;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Totals {
  std::uint64_t sum = 0;
  std::uint64_t bytes = 0;
};

Totals sum_of_words(const Checkpoint& file) {
  Totals totals;
  const Dict* weights = file.root.as_dict();
  for (const auto& [key, value] : weights->items) {
    auto bytes = value.as_tensor()->storage->source->load().value();
    totals.bytes += bytes.size();
    // Several at a time: one by one, the rate depends on where the linker puts
    // the loop.
    constexpr std::size_t kWords = 16;
    std::array<std::int32_t, kWords> words{};
    std::array<std::int64_t, kWords> sums{};
    for (; bytes.size() >= sizeof words; bytes = bytes.subspan(sizeof words)) {
      std::memcpy(words.data(), bytes.data(), sizeof words);
      for (std::size_t k = 0; k < kWords; ++k) {
        sums[k] += words[k];
      }
    }
    words.fill(0);
    std::memcpy(words.data(), bytes.data(), bytes.size() / 4 * 4);
    for (std::size_t k = 0; k < kWords; ++k) {
      sums[k] += words[k];
    }
    for (const std::int64_t sum : sums) {
      totals.sum += static_cast<std::uint64_t>(sum);
    }
  }
  return totals;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: ckpt_bench FILE COPY\n";
    return 2;
  }
  const std::string copy = argv[2];
  const Checkpoint source = lockstep::ckpt::load(argv[1]).value();
  const Totals expected = sum_of_words(source);
  lockstep::ckpt::save(copy, source.root).value();

  lockstep::bench::serve(
      {{"bytes", expected.bytes}},
      [&](const std::string& what) {
        json result = {{"sum", nullptr}};
        const bool saves = what.starts_with("save");
        if (saves) {
          std::filesystem::remove(copy);
        }
        const auto start = Clock::now();
        if (saves) {
          lockstep::ckpt::save(
              copy,
              source.root,
              {.durable = what == "save-durable"})
              .value();
        } else {
          result["sum"] = sum_of_words(lockstep::ckpt::load(copy).value()).sum;
        }
        const std::chrono::duration<double> seconds = Clock::now() - start;
        result["gb_per_s"] =
            static_cast<double>(expected.bytes) / seconds.count() / 1e9;
        return result;
      });
}
