// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/rank_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

const char* variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  return std::getenv(name);
}

// The GPU that is number 0 for this rank.
std::string only_device(int local_rank) {
  const auto devices = visible_devices();
  return devices ? devices->at(static_cast<std::size_t>(local_rank))
                 : std::to_string(local_rank);
}

std::string signal_names(const std::vector<int>& numbers) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const int number : numbers) {
    names.push_back(signal_name(number));
  }
  return join(names, ",");
}

} // namespace

Variables rank_variables(const LaunchOptions& options, const RankStart& start) {
  const std::string rank = std::to_string(options.rank_of(start.local_rank));
  const std::string size = std::to_string(options.world_size());
  const std::string local_rank = std::to_string(start.local_rank);
  Variables variables{
      {"LOCAL_RANK", options.is_virtual_local_rank ? "0" : local_rank},
      {"RANK", rank},
      {"GROUP_RANK", std::to_string(options.node_rank)},
      {"ROLE_RANK", rank},
      {"ROLE_NAME", options.role},
      {"LOCAL_WORLD_SIZE", std::to_string(options.local_size)},
      {"WORLD_SIZE", size},
      {"GROUP_WORLD_SIZE", std::to_string(options.nodes)},
      {"ROLE_WORLD_SIZE", size},
      {"MASTER_ADDR", options.master_addr},
      {"MASTER_PORT", std::to_string(start.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(start.attempt)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
      {"TORCHELASTIC_RUN_ID", options.run_id},
      // Rank 0 holds the store: the launcher has none.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", start.error_file},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", signal_names(options.signals)}};
  if (variable("TORCH_NCCL_ASYNC_ERROR_HANDLING") == nullptr) {
    variables.emplace_back("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  }
  if (const int threads = threads_for_each(options); threads != 0) {
    variables.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  }
  if (options.is_virtual_local_rank) {
    variables.emplace_back(
        "CUDA_VISIBLE_DEVICES",
        only_device(start.local_rank));
  }
  return variables;
}

int threads_for_each(const LaunchOptions& options) {
  if (options.local_size == 1 || variable("OMP_NUM_THREADS") != nullptr) {
    return 0;
  }
  return std::max(1, usable_cores() / options.local_size);
}

std::vector<std::string> merged_environment(const Variables& variables) {
  std::vector<std::string> merged;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-bounds-pointer-arithmetic)
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_replaced = std::ranges::any_of(
        variables,
        [name](const auto& each) { return each.first == name; });
    if (!is_replaced) {
      merged.emplace_back(text);
    }
  }
  for (const auto& [name, value] : variables) {
    merged.push_back(format("{}={}", name, value));
  }
  return merged;
}

} // namespace lockstep::launch
