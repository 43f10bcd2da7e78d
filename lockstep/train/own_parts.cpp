// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/own_parts.h"

#include <string>
#include <typeinfo>

#include <c10/util/Type.h>

#include "lockstep/base/error.h"
#include "lockstep/data/registry.h"

namespace lockstep::train {
namespace {

// "own:Net" of "(anonymous namespace)::Net", "own:torch::nn::Sequential" of
// "torch::nn::SequentialImpl".
std::string own_name(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != std::string::npos;
       at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  constexpr std::string_view kImpl = "Impl";
  if (name.ends_with(kImpl) && name != kImpl) {
    name.resize(name.size() - kImpl.size());
  }
  return std::string(kOwnPrefix) + name;
}

TransformOptions transform_of(const TrainConfig& config) {
  if (config.augment == "none") {
    return {};
  }
  return {.crop_padding = 4, .horizontal_flip = true, .seed = config.seed};
}

[[noreturn]] void refuse_own(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.data",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_OWN_PARTS"});
}

} // namespace

BestBy OwnParts::best_by() const {
  return !has_test()     ? BestBy::kTrainLoss
         : has_classes() ? BestBy::kAccuracy
                         : BestBy::kTestLoss;
}

TrainConfig with_own_names(TrainConfig config, const OwnParts& own) {
  if (!own.model.is_empty()) {
    config.model = own_name(own.model.module().name());
  }
  if (own.has_data()) {
    const Dataset& data = own.train_data ? *own.train_data : *own.test_data;
    config.data = own_name(c10::demangle(typeid(data).name()));
  }
  return config;
}

std::pair<std::shared_ptr<const Dataset>, std::shared_ptr<const Dataset>>
open_data_of(const TrainConfig& config, const OwnParts& own) {
  if (!own.has_data()) {
    return {
        open_dataset(
            config.data,
            config.data_dir,
            /*train=*/true,
            transform_of(config)),
        open_dataset(config.data, config.data_dir, /*train=*/false)};
  }
  if (own.train_data == nullptr && !config.test_only) {
    refuse_own(
        "the program gave test data, but no training data",
        "set .own.train_data, too; .test_only needs none");
  }
  if (config.test_only && !own.has_test()) {
    refuse_own(
        "a test only, and the program gave no test data",
        "set .own.test_data");
  }
  const auto& train =
      own.train_data == nullptr ? own.test_data : own.train_data;
  if (train->num_classes() == 0 && !own.loss) {
    refuse_own(
        "the program's data have no targets, which the settings' loss, cross "
        "entropy, needs",
        "set .own.loss, or give the data targets");
  }
  return {train, own.has_test() ? own.test_data : nullptr};
}

} // namespace lockstep::train
