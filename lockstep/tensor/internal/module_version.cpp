// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/module_version.h"

#include <array>
#include <string_view>

#include <torch/nn/module.h>

#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

struct VersionRow {
  std::string_view class_name = {};
  std::int64_t version = 1;
};

// Classes whose `_version` is not 1 in PyTorch 2.13; a test asks Python.
constexpr std::array kVersions{
    VersionRow{"BatchNorm1d", 2},
    VersionRow{"BatchNorm2d", 2},
    VersionRow{"BatchNorm3d", 2},
    VersionRow{"InstanceNorm1d", 2},
    VersionRow{"InstanceNorm2d", 2},
    VersionRow{"InstanceNorm3d", 2},
    VersionRow{"SyncBatchNorm", 2},
};

} // namespace

std::int64_t state_version(const torch::nn::Module& module) {
  const std::string name = class_name(module);
  for (const VersionRow& row : kVersions) {
    if (row.class_name == name) {
      return row.version;
    }
  }
  return 1;
}

// "torch::nn::Conv2dImpl" -> "Conv2d"; "(anonymous namespace)::Net" -> "Net".
std::string class_name(const torch::nn::Module& module) {
  std::string_view name = module.name();
  name = name.substr(0, name.find('<'));
  if (const std::size_t colon = name.rfind("::");
      colon != std::string_view::npos) {
    name.remove_prefix(colon + 2);
  }
  constexpr std::string_view kSuffix = "Impl";
  if (name.ends_with(kSuffix) && name.size() > kSuffix.size()) {
    name.remove_suffix(kSuffix.size());
  }
  return std::string(name);
}

} // namespace lockstep
