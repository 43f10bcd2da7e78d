// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/test_samples.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/png_writer.h"
#include "lockstep/data/internal/sample_picture.h"
#include "lockstep/tensor/rng.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostSamples = 12;
/// Of masks, which are three pictures each.
constexpr std::int64_t kMostMasks = 6;
/// Units: numbers of all samples together.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;
/// Units: pixels.
constexpr std::int64_t kLongestSide = 112;
constexpr std::int64_t kMostWords = 6;

// "0.5 1.25 ..." of a row of values.
std::string values_text(const float* values, std::int64_t count) {
  std::vector<std::string> words;
  words.reserve(kMostWords);
  for (std::int64_t i = 0; i < std::min(count, kMostWords); ++i) {
    words.push_back(format("{:.4g}", values[i]));
  }
  return join(words, " ") + (count > kMostWords ? " ..." : "");
}

std::string labels_text(
    const TrainedData& trained,
    const std::vector<bool>& is_set) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < is_set.size(); ++i) {
    if (is_set[i]) {
      words.push_back(trained.name_of(static_cast<std::int64_t>(i)));
    }
  }
  return words.empty() ? "(none)" : join(words, ", ");
}

// Shape: `targets` of one sample.
std::vector<bool> labels_of(const float* targets, std::int64_t count) {
  constexpr float kHalf = 0.5F;
  std::vector<bool> is_set;
  is_set.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    is_set.push_back(targets[i] > kHalf);
  }
  return is_set;
}

bool has_pictures(const std::vector<std::int64_t>& shape) {
  return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3);
}

} // namespace

TestSamples::TestSamples(
    std::shared_ptr<const Dataset> data,
    std::int64_t count,
    std::int64_t batch_size,
    TrainedData trained)
    : data_(std::move(data)),
      count_(count),
      batch_size_(batch_size),
      trained_(std::move(trained)) {}

void TestSamples::read() {
  if (std::exchange(has_read_, true) || count_ == 0 ||
      trained_.target.kind == TargetKind::kNone ||
      trained_.target.kind == TargetKind::kStructure) {
    return;
  }
  kind_ = output_kind(trained_);
  const std::vector<std::int64_t> shape = data_->sample_shape();
  std::int64_t numbers = 1;
  for (const std::int64_t side : shape) {
    numbers *= side;
  }
  const std::int64_t most =
      kind_ == OutputKind::kMasks ? kMostMasks : kMostSamples;
  const std::int64_t count = std::min(
      {most, count_, kMostNumbers / std::max<std::int64_t>(numbers, 1)});
  if (count == 0 || kind_ == OutputKind::kMaps) {
    return;
  }
  std::vector<std::int64_t> indices;
  indices.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(i * count_ / count);
  }
  std::vector<std::int64_t> sizes{count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  at::Tensor inputs = at::empty(sizes, at::kFloat);
  auto* const number = inputs.mutable_data_ptr<float>();
  const auto targets =
      static_cast<std::size_t>(count * trained_.target.numel());
  const bool has_values = trained_.target.kind == TargetKind::kValues;
  classes_.resize(has_values ? 0 : targets);
  values_.resize(has_values ? targets : 0);
  TargetRows rows;
  rows.classes = classes_;
  rows.values = values_;
  const auto all = static_cast<std::size_t>(count * numbers);
  data_->read(indices, /*epoch=*/0, std::span(number, all), rows);
  if (has_pictures(shape)) {
    for (std::int64_t i = 0; i < count; ++i) {
      pictures_.push_back(lockstep::internal::sample_picture(
          {number + i * numbers, static_cast<std::size_t>(numbers)},
          {.channels = shape[0], .height = shape[1], .width = shape[2]},
          trained_.pixels));
    }
  }
  inputs_ = std::move(inputs);
  indices_ = std::move(indices);
}

void TestSamples::add_words(
    SampleRecord& record,
    std::size_t i,
    const at::Tensor& output) const {
  const at::Tensor numbers = output.reshape({-1}).contiguous();
  const auto* const number = numbers.const_data_ptr<float>();
  const std::int64_t size = trained_.target.numel();
  const auto first = static_cast<std::ptrdiff_t>(i) * size;
  if (kind_ == OutputKind::kClasses) {
    const at::Tensor shares = at::softmax(numbers, /*dim=*/0);
    const auto found = numbers.argmax().item<std::int64_t>();
    constexpr double kHundred = 100;
    record.target = trained_.name_of(classes_[i]);
    record.output = format(
        "{} ({:.0f} %)",
        trained_.name_of(found),
        shares[found].item<double>() * kHundred);
    record.is_right = found == classes_[i];
  } else if (kind_ == OutputKind::kLabels) {
    const std::vector<bool> wanted = labels_of(values_.data() + first, size);
    const at::Tensor shares = at::sigmoid(numbers).contiguous();
    const std::vector<bool> found =
        labels_of(shares.const_data_ptr<float>(), numbers.numel());
    record.target = labels_text(trained_, wanted);
    record.output = labels_text(trained_, found);
    record.is_right = wanted == found;
  } else {
    record.target = values_text(values_.data() + first, size);
    record.output = values_text(number, numbers.numel());
  }
}

SampleRecord TestSamples::record_of(std::size_t i, const at::Tensor& outputs)
    const {
  SampleRecord record{.name = data_->sample_name(indices_[i])};
  const at::Tensor output = outputs[static_cast<std::int64_t>(i)];
  std::vector<Image> pictures;
  if (!pictures_.empty()) {
    pictures.push_back(pictures_[i]);
  }
  if (kind_ == OutputKind::kMasks) {
    const auto pixels = static_cast<std::size_t>(trained_.target.numel());
    const std::int64_t height = trained_.target.shape[0];
    const std::int64_t width = trained_.target.shape[1];
    const at::Tensor found = output.argmax(0).contiguous();
    pictures.push_back(lockstep::internal::mask_picture(
        {&classes_[i * pixels], pixels},
        height,
        width));
    pictures.push_back(lockstep::internal::mask_picture(
        {found.const_data_ptr<std::int64_t>(),
         static_cast<std::size_t>(found.numel())},
        found.size(0),
        found.size(1)));
  } else {
    add_words(record, i, output);
  }
  for (Image& picture : pictures) {
    picture = lockstep::internal::thumbnail(picture, kLongestSide);
  }
  if (!pictures.empty()) {
    record.png = lockstep::internal::encode_png(
        lockstep::internal::side_by_side(pictures));
  }
  return record;
}

at::Tensor TestSamples::outputs_of(Strategy& strategy) const {
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < inputs_.size(0); first += batch_size_) {
    const at::Tensor batch = inputs_.narrow(
        /*dim=*/0,
        first,
        std::min(batch_size_, inputs_.size(0) - first));
    parts.push_back(strategy.predict(batch).to(at::kCPU, at::kFloat));
  }
  return at::cat(parts);
}

std::vector<SampleRecord> TestSamples::show(Strategy& strategy) {
  try {
    read();
    if (indices_.empty()) {
      return {};
    }
    const RngStateGuard guard;
    const at::Tensor outputs = outputs_of(strategy);
    const bool is_mask = kind_ == OutputKind::kMasks;
    const std::int64_t expected =
        trained_.num_outputs() > 0 ? trained_.num_outputs() : 1;
    const std::int64_t given = outputs.dim() > 1 ? outputs.size(1) : 1;
    if (outputs.dim() != (is_mask             ? 4
                          : outputs.dim() > 1 ? 2
                                              : 1) ||
        outputs.size(0) != std::ssize(indices_) || given < expected) {
      return {};
    }
    std::vector<SampleRecord> records;
    records.reserve(indices_.size());
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      records.push_back(record_of(i, outputs));
    }
    return records;
  } catch (const c10::Error& error) { // whose text has a backtrace
    note_failure(error.what_without_backtrace());
  } catch (const std::exception& error) {
    note_failure(error.what());
  }
  return {};
}

void TestSamples::note_failure(std::string text) {
  if (!std::exchange(has_failed_, true)) {
    failure_ = std::move(text);
  }
}

} // namespace lockstep::train
