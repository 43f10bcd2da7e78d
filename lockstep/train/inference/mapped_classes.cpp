// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/mapped_classes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

class MappedClasses final : public Dataset {
 public:
  /// `numbers`: the new one of each class of `source`.
  MappedClasses(
      std::shared_ptr<const Dataset> source,
      std::vector<std::int64_t> numbers,
      const TrainedData& trained)
      : source_(std::move(source)),
        numbers_(std::move(numbers)),
        num_classes_(trained.num_classes),
        class_names_(trained.class_names) {}

  [[nodiscard]] std::int64_t size() const override {
    return source_->size();
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return source_->sample_shape();
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return num_classes_;
  }
  [[nodiscard]] TargetFormat target_format() const override {
    return source_->target_format();
  }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return class_names_;
  }
  [[nodiscard]] PixelFormat pixel_format() const override {
    return source_->pixel_format();
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return source_->sample_name(index);
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override {
    source_->read(indices, epoch, images, targets);
    for (std::int64_t& target : targets.classes) {
      // What is not counted is no class.
      if (target >= 0 && target < std::ssize(numbers_)) {
        target = numbers_[static_cast<std::size_t>(target)];
      }
    }
  }

 private:
  std::shared_ptr<const Dataset> source_;
  std::vector<std::int64_t> numbers_;
  std::int64_t num_classes_;
  std::vector<std::string> class_names_;
};

[[noreturn]] void
refuse_classes(std::string_view detail, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "eval.data",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = std::string(detail)});
}

void check_targets(const TargetFormat& now, const TrainedData& trained) {
  const TargetFormat& was = trained.target;
  const bool is_same =
      was.kind == now.kind && was.shape.size() == now.shape.size() &&
      (was.kind != TargetKind::kValues || was.shape == now.shape);
  if (!is_same) {
    refuse_classes(
        "E_OTHER_DATA",
        format(
            "the model was trained for the task {}; the data have other "
            "targets",
            escape(trained.task)),
        "--data names data of the same kind");
  }
}

} // namespace

std::shared_ptr<const Dataset> with_classes_of(
    std::shared_ptr<const Dataset> data,
    const TrainedData& trained) {
  check_targets(data->target_format(), trained);
  const std::vector<std::string> names = data->class_names();
  const std::vector<std::string>& known = trained.class_names;
  if (trained.num_classes == 0 && !names.empty() && !known.empty() &&
      names != known) {
    refuse_classes(
        "E_OTHER_DATA",
        format(
            "the model gives {}, the data have {}",
            join(known, ", "),
            join(names, ", ")),
        "name the columns in the model's order: --target");
  }
  if (trained.num_classes == 0 || names == known) {
    return data;
  }
  if (names.empty() || known.empty()) {
    if (data->num_classes() == trained.num_classes) {
      return data;
    }
    refuse_classes(
        "E_OTHER_DATA",
        format(
            "the model knows {}, the data have {}, and not both have names",
            counted(
                static_cast<std::uint64_t>(trained.num_classes),
                "class",
                "classes"),
            data->num_classes()),
        "--data names data with the classes of the model");
  }
  std::vector<std::int64_t> numbers;
  numbers.reserve(names.size());
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    numbers.push_back(found - known.begin());
    if (found == known.end()) {
      unknown.push_back(name);
    }
  }
  if (!unknown.empty()) {
    refuse_classes(
        "E_CLASSES",
        format("the model does not know {}", some_names(unknown)),
        format("its classes are {}", some_names(known)));
  }
  return std::make_shared<MappedClasses>(
      std::move(data),
      std::move(numbers),
      trained);
}

} // namespace lockstep::train
