// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets by name, for command lines.
//   auto test = open_dataset("fashion-mnist", "", /*train=*/false);
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

/// Names that `open_dataset` knows, sorted.
std::vector<std::string> dataset_names();

/// Opens the training or the test part of a dataset. An empty `directory`
/// means the place where the system installs it.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one
/// as hint), and what the dataset itself throws, see fashion_mnist.h.
std::shared_ptr<Dataset> open_dataset(
    std::string_view name,
    const std::string& directory,
    bool train,
    const TransformOptions& transform = {});

} // namespace lockstep
