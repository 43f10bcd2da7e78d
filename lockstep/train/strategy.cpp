// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/strategy.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/parallel/data_parallel.h"

namespace lockstep::train {
namespace {

class Single final : public Strategy {
 public:
  Single(std::shared_ptr<Model> model, c10::Device device)
      : model_(std::move(model)), device_(device) {
    model_->to(device_);
  }
  at::Tensor forward(const at::Tensor& images) override {
    return model_->forward(images.to(device_));
  }
  [[nodiscard]] Workers workers() const override {
    return {};
  }
  [[nodiscard]] std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads()
      const override {
    return nullptr;
  }
  void train(bool on) override {
    model_->train(on);
  }
  [[nodiscard]] std::string name() const override {
    return "single";
  }

 private:
  std::shared_ptr<Model> model_;
  c10::Device device_;
};

class Replicated final : public Strategy {
 public:
  Replicated(
      const std::shared_ptr<Model>& model,
      std::span<const c10::Device> devices) {
    model->to(devices.front());
    // Our optimizers keep the promise.
    model_ = DataParallel(
        model,
        {.devices = std::vector(devices.begin(), devices.end()),
         .trust_versions = true});
  }
  at::Tensor forward(const at::Tensor& images) override {
    return model_->forward(images);
  }
  [[nodiscard]] Workers workers() const override {
    return model_->group().workers();
  }
  [[nodiscard]] std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads()
      const override {
    return model_->group().share_threads();
  }
  void train(bool on) override {
    model_->train(on);
  }
  [[nodiscard]] std::string name() const override {
    return "data_parallel";
  }

 private:
  DataParallel<Model> model_ = nullptr;
};

} // namespace

std::unique_ptr<Strategy> make_strategy(
    const TrainConfig& config,
    std::shared_ptr<Model> model,
    std::span<const c10::Device> devices) {
  const bool several = devices.size() > 1;
  if (config.strategy == "single" && several) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.strategy",
         .message = format(
             "--strategy single uses one device; --devices names {}",
             devices.size()),
         .hint = "--strategy data_parallel uses all of them"});
  }
  if (several || config.strategy == "data_parallel") {
    return std::make_unique<Replicated>(model, devices);
  }
  return std::make_unique<Single>(std::move(model), devices.front());
}

} // namespace lockstep::train
