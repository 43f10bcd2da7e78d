// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/registry.h"

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/fashion_mnist.h"

namespace lockstep {
namespace {

using Opener =
    std::shared_ptr<ImageDataset> (*)(const std::string&, const MnistOptions&);

struct Entry {
  std::string_view name = {};
  Opener open = nullptr;
};

constexpr std::array kEntries{
    Entry{"fashion-mnist", fashion_mnist},
    Entry{"mnist", mnist},
};

} // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) {
    names.emplace_back(entry.name);
  }
  return names;
}

std::shared_ptr<Dataset> open_dataset(
    std::string_view name,
    const std::string& directory,
    bool train,
    const TransformOptions& transform) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) {
      return entry.open(directory, {.train = train, .transform = transform});
    }
  }
  const std::vector<std::string> names = dataset_names();
  const std::string near = nearest(name, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.open",
       .message = format(
           "unknown dataset '{}'; expected one of {}",
           escape(name),
           join(names, ", ")),
       .hint = near.empty() ? "" : format("did you mean {}?", near),
       .detail = "E_DATA_NAME"});
}

} // namespace lockstep
