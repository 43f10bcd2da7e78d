// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/device_table.h"

#include <algorithm>

#include <ATen/DeviceAccelerator.h>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using parallel::Cargo;
using parallel::kCargoes;

constexpr double kMiB = 1024.0 * 1024.0;

std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    bytes += tensor.defined() ? tensor.nbytes() : 0;
  }
  return bytes;
}

std::uint64_t gradients_of(const torch::nn::Module& module) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    bytes += parameter.grad().defined() ? parameter.grad().nbytes() : 0;
  }
  return bytes;
}

std::uint64_t peak_of(c10::Device device) {
  if (device.is_cpu()) {
    return 0;
  }
  const auto stats = at::accelerator::getDeviceStats(device.index());
  return static_cast<std::uint64_t>(stats.allocated_bytes.front().peak);
}

// CPU replicas alias the module's parameters; they are counted once.
DeviceRow row_of(const DataParallelBase& model, std::size_t replica) {
  const torch::nn::Module& module = model.group().replica(replica);
  DeviceRow row{.device = model.devices()[replica]};
  const bool is_shared = replica > 0 && row.device == model.devices().front();
  row.parameters = is_shared ? 0 : bytes_of(module.parameters());
  row.buffers = bytes_of(module.buffers());
  row.gradients = replica > 0 ? 0 : gradients_of(module);
  row.peak = peak_of(row.device);
  const std::uint64_t known = row.parameters + row.buffers + row.gradients;
  row.activations = row.peak > known ? row.peak - known : 0;
  return row;
}

} // namespace

DeviceMeter::DeviceMeter(const DataParallelBase& model) : model_(model) {
  for (const c10::Device& device : model.devices()) {
    if (!device.is_cpu()) {
      at::accelerator::resetPeakStats(device.index());
    }
  }
  model.group().traffic().reset();
}

DeviceTable DeviceMeter::table() const {
  DeviceTable table{.steps = steps_};
  const std::uint64_t steps = std::max<std::uint64_t>(steps_, 1);
  for (std::size_t r = 0; r < model_.devices().size(); ++r) {
    DeviceRow row = row_of(model_, r);
    for (std::size_t c = 0; c < kCargoes; ++c) {
      const auto moved = model_.group().traffic().of(static_cast<Cargo>(c), r);
      row.moved[c] = {
          .copies = moved.copies / steps,
          .bytes = moved.bytes / steps};
    }
    table.rows.push_back(row);
  }
  const auto [low, high] =
      std::ranges::minmax(table.rows, {}, &DeviceRow::peak);
  if (high.peak > 0) {
    table.imbalance = static_cast<double>(high.peak - low.peak) /
                      static_cast<double>(high.peak);
  }
  return table;
}

std::string to_text(const DeviceTable& table) {
  const auto mib = [](std::uint64_t bytes) {
    return format("{:.2f}", static_cast<double>(bytes) / kMiB);
  };
  std::string text = format(
      "{:<8}{:>11}{:>9}{:>11}{:>13}{:>9}{:>13}{:>13}\n",
      "device",
      "parameters",
      "buffers",
      "gradients",
      "activations",
      "peak",
      "copies/step",
      "MiB/step");
  for (const DeviceRow& row : table.rows) {
    parallel::Moved sum;
    for (const parallel::Moved& moved : row.moved) {
      sum.copies += moved.copies;
      sum.bytes += moved.bytes;
    }
    text += format(
        "{:<8}{:>11}{:>9}{:>11}{:>13}{:>9}{:>13}{:>13}\n",
        row.device.str(),
        mib(row.parameters),
        mib(row.buffers),
        mib(row.gradients),
        mib(row.activations),
        mib(row.peak),
        sum.copies,
        mib(sum.bytes));
  }
  return text +
         format("memory in MiB; imbalance {:.0f} %\n", table.imbalance * 100);
}

} // namespace lockstep
