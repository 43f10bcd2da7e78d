// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "cli_train/bench_report.h"
#include "cli_train/bench_steps.h"
#include "cli_train/command_flags.h"
#include "cli_train/commands.h"
#include "cli_train/tune.h"
#include "cli_train/tune_report.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/report/console.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/internal/commands.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::cli_train {
namespace {

constexpr const train::TrainCommand& kBench = train::kTrainCommands[2];
static_assert(kBench.name == "bench");

constexpr std::string_view kBenchAbout =
    "Trains a model on random images and says what a step costs on this\n"
    "machine: images per second, the share of the machine's peak, and the "
    "time\n"
    "and the kernel of every layer.";

// The default of `--kernels` comes first.
constexpr std::array<std::string_view, 3> kWhose{"lockstep", "exact", "torch"};

// Likewise.
constexpr std::array<std::string_view, 3> kAmp{"off", "bf16", "auto"};

c10::Device read_device(const CommandFlags& flags) {
  const std::string spec = flags.text("--devices");
  const auto devices = parse_devices(spec.empty() ? "cpu" : spec);
  if (devices.size() != 1) {
    flags.fail(
        format(
            "--devices: expected one device, got {} in '{}'",
            devices.size(),
            spec),
        format("--devices {}", devices.front().str()));
  }
  if (!devices.front().is_cpu() && flags.has("--tune")) {
    flags.fail("--tune: Lockstep's convolutions are for the CPU");
  }
  return devices.front();
}

BenchRequest read_request(const CommandFlags& flags) {
  const c10::Device device = read_device(flags);
  BenchRequest request{
      .model = read_model_request(flags, {.batch_size = 64}),
      .device = device,
      .threads = static_cast<int>(
          flags.number("--threads", usable_cores(), train::kMaxThreads)),
      .channels_last = flags.has("--channels-last"),
      .amp = train::decided_amp(
          {.cuda = device.is_cuda(), .amp = flags.choice("--amp", kAmp)}),
      .steps = flags.number("--steps", 10),
      .kernels = {flags.choice("--kernels", kWhose)}};
  if (flags.has("--compare")) {
    if (flags.has("--tune")) {
      flags.fail("--compare: --tune compares every algorithm with LibTorch's");
    }
    const std::string other = flags.choice("--compare", kWhose);
    if (other == request.kernels.front()) {
      flags.fail(format(
          "--compare: expected other kernels than those of --kernels, got '{}' "
          "twice",
          other));
    }
    request.kernels.push_back(other);
  }
  return request;
}

} // namespace

int bench_command(Arguments args) {
  const CommandFlags flags(kBench, args);
  if (flags.has("--help")) {
    flags.print_help(kBenchAbout);
    return 0;
  }
  const BenchRequest request = read_request(flags);
  report::Console console(STDERR_FILENO);
  const bool is_tuned = flags.has("--tune");
  const auto progress = [&](std::int64_t done, std::int64_t all) {
    console.set_status(
        done == all ? ""
                    : format(
                          "{} {} of {}",
                          is_tuned ? "convolution" : "step",
                          done + 1,
                          all));
  };
  const bool is_json = flags.has("--json");
  std::string text;
  if (is_tuned) {
    const TuneResult result = run_tune(request, progress);
    text = is_json ? tune_json(request, result).dump() + "\n"
                   : tune_text(request, result);
  } else {
    const BenchResult result = run_bench(request, progress);
    text = is_json ? bench_json(request, result).dump() + "\n"
                   : bench_text(request, result);
  }
  print(text);
  return 0;
}

} // namespace lockstep::cli_train
