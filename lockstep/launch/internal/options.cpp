// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/options.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

Error bad_flag(
    std::string_view flag,
    std::string_view value,
    std::string hint) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "run.args",
      .message = format("{} does not take '{}'", flag, escape(value)),
      .hint = std::move(hint)};
}

// By local rank, two bits: 1 standard output, 2 standard error.
Result<std::vector<int>>
parse_streams(std::string_view flag, std::string_view text, int local_size) {
  constexpr int kMost = 3;
  const std::string hint =
      "0, 1 (standard output), 2 (standard error) or 3 (both), for all ranks "
      "or for some: 0:3,1:2";
  std::vector<int> streams(static_cast<std::size_t>(local_size), 0);
  if (const auto number = parse_number<int>(text, 0, kMost)) {
    std::ranges::fill(streams, *number);
    return streams;
  }
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      return bad_flag(flag, text, hint);
    }
    const std::string_view view = part;
    const auto rank =
        parse_number<int>(view.substr(0, colon), 0, local_size - 1);
    const auto number = parse_number<int>(view.substr(colon + 1), 0, kMost);
    if (!rank || !number) {
      return bad_flag(flag, text, hint);
    }
    streams[static_cast<std::size_t>(*rank)] = *number;
  }
  return streams;
}

OutputPlace place(bool is_redirected, bool is_teed) {
  return is_teed         ? OutputPlace::kBoth
         : is_redirected ? OutputPlace::kFile
                         : OutputPlace::kConsole;
}

// GPUs that a program would see: those of CUDA_VISIBLE_DEVICES, or of /dev.
int count_gpus() {
  if (const auto visible = visible_devices()) {
    const bool has_none = visible->front().empty() || visible->front() == "-1";
    return has_none ? 0 : static_cast<int>(visible->size());
  }
  const auto names = real_fs().list("/dev");
  return !names
             ? 0
             : static_cast<int>(
                   std::ranges::count_if(*names, [](const std::string& name) {
                     constexpr std::string_view kStart = "nvidia";
                     return name.starts_with(kStart) &&
                            parse_number<int>(
                                std::string_view(name).substr(kStart.size()),
                                0);
                   }));
}

} // namespace

OutputPlaces LaunchOptions::places_of(int local_rank) const {
  const auto index = static_cast<std::size_t>(local_rank);
  OutputPlaces chosen = index < places.size() ? places[index] : OutputPlaces();
  if (!shown_ranks.empty() &&
      std::ranges::find(shown_ranks, local_rank) == shown_ranks.end()) {
    chosen = {.out = OutputPlace::kFile, .err = OutputPlace::kFile};
  }
  return chosen;
}

Result<std::vector<OutputPlaces>>
parse_places(std::string_view redirects, std::string_view tee, int local_size) {
  constexpr int kOut = 1;
  constexpr int kErr = 2;
  LOCKSTEP_ASSIGN(
      const auto files,
      parse_streams("--redirects", redirects, local_size));
  LOCKSTEP_ASSIGN(const auto both, parse_streams("--tee", tee, local_size));
  std::vector<OutputPlaces> places;
  places.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    places.push_back(
        {.out = place((files[i] & kOut) != 0, (both[i] & kOut) != 0),
         .err = place((files[i] & kErr) != 0, (both[i] & kErr) != 0)});
  }
  return places;
}

Result<std::vector<int>> parse_signals(std::string_view names) {
  constexpr int kSignals = 32;
  std::vector<int> numbers;
  for (const std::string& name : split(names, ',')) {
    int found = 0;
    for (int number = 1; number < kSignals && found == 0; ++number) {
      found = signal_name(number) == name ? number : 0;
    }
    if (found == 0 || found == SIGKILL || found == SIGSTOP) {
      return bad_flag(
          "--signals-to-handle",
          name,
          "names that a program can handle: SIGTERM,SIGINT,SIGUSR1");
    }
    numbers.push_back(found);
  }
  return numbers;
}

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? format("signal {}", number) : format("SIG{}", name);
}

std::optional<std::vector<std::string>> visible_devices() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> devices = split(text, ',');
  for (std::string& device : devices) {
    device.erase(0, device.find_first_not_of(' '));
    device.erase(device.find_last_not_of(' ') + 1);
  }
  return devices;
}

Status check_own_devices(int local_size) {
  const auto devices = visible_devices();
  if (!devices || local_size <= std::ssize(*devices)) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "run.args",
      .message = format(
          "--virtual-local-rank: each of {} ranks sees a GPU of its own, and "
          "CUDA_VISIBLE_DEVICES names {}: '{}'",
          local_size,
          devices->size(),
          escape(join(*devices, ","))),
      .hint = format("--nproc-per-node {}", devices->size())};
}

Result<int> parse_local_size(std::string_view text) {
  constexpr int kMost = 4096;
  if (text == "cpu") {
    return usable_cores();
  }
  if (text == "gpu" || text == "auto") {
    const int gpus = count_gpus();
    if (gpus == 0 && text == "gpu") {
      return Error{
          .code = ErrorCode::kUnavailable,
          .op = "run.args",
          .message = "--nproc-per-node gpu: this machine shows no GPU",
          .hint = "give a number, or 'cpu' for one rank for each core"};
    }
    return gpus == 0 ? usable_cores() : gpus;
  }
  const auto number = parse_number<int>(text, 1, kMost);
  if (!number) {
    return bad_flag(
        "--nproc-per-node",
        text,
        format("a number of ranks from 1 to {}, or auto, cpu, gpu", kMost));
  }
  return *number;
}

} // namespace lockstep::launch
