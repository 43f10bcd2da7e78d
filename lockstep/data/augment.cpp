// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/augment.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/augment_plan.h"

namespace lockstep {
namespace {

struct NamedAugment {
  std::string_view name = {};
  Augment (*make)() = nullptr;
};

// From a third of the picture on. Much less random crops would not fit into
// pictures that are not square, which then always show their middle.
Augment light() {
  return {
      {{.name = "random_resized_crop", .values = {{"scale", {0.35, 1}}}},
       {.name = "horizontal_flip"}}};
}

// ImageNet's, in torchvision's recipes for classification.
Augment standard() {
  return {{{.name = "random_resized_crop"}, {.name = "horizontal_flip"}}};
}

// As torchvision trained its newer weights (IMAGENET1K_V2).
Augment strong() {
  return {
      {{.name = "random_resized_crop"},
       {.name = "horizontal_flip"},
       {.name = "trivial_augment"},
       {.name = "erasing", .probability = 0.1}}};
}

constexpr std::array kNamed{
    NamedAugment{"light", light},
    NamedAugment{"standard", standard},
    NamedAugment{"strong", strong}};

} // namespace

std::vector<std::string> augment_names() {
  std::vector<std::string> names;
  names.reserve(kNamed.size());
  for (const NamedAugment& named : kNamed) {
    names.emplace_back(named.name);
  }
  return names;
}

Augment named_augment(std::string_view name) {
  const auto* const found =
      std::ranges::find(kNamed, name, &NamedAugment::name);
  if (found == kNamed.end()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.augment",
         .message = format(
             "no augmentation is called '{}'; expected one of {}",
             escape(name),
             join(augment_names(), ", ")),
         .detail = "E_DATA_OPTION"});
  }
  return found->make();
}

Augmenter::Augmenter(const Augment& augment, AugmenterOptions options)
    : plan_(std::make_shared<internal::AugmentPlan>(augment, options)) {}

AnnotatedImage Augmenter::apply(
    AnnotatedImage sample,
    std::int64_t epoch,
    std::int64_t index) const {
  return plan_->apply(std::move(sample), epoch, index);
}

std::int64_t Augmenter::min_side() const {
  return plan_->min_side();
}

} // namespace lockstep
