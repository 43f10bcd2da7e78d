// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/data_facts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <c10/util/accumulate.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/image_options.h"

namespace lockstep::internal {
namespace {

// What is kept of each sample.
struct Look {
  std::uint64_t hash = 0;
  ImageShape shape = {};
  /// Units: elements of one channel.
  double count = 0;
  /// One for each channel.
  std::vector<double> sums = {};
  std::vector<double> squares = {};
  std::vector<std::int64_t> classes = {};
  std::vector<float> values = {};
  std::optional<Error> error = {};
};

// Exact, so that the order of the threads does not matter.
void look_at_file(const std::string& path, Look& look) {
  const std::string bytes = read_text(real_fs(), path).value();
  look.hash = hash_of(bytes.data(), bytes.size());
  const Image image = decode_image(as_byte_span(bytes), path);
  look.shape = image.shape;
  const auto channels = static_cast<std::size_t>(image.shape.channels);
  std::vector<std::uint64_t> sums(channels);
  std::vector<std::uint64_t> squares(channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint64_t pixel = image.pixels[i + c];
      sums[c] += pixel;
      squares[c] += pixel * pixel;
    }
  }
  constexpr double kWhite = 255;
  look.count = static_cast<double>(image.shape.height * image.shape.width);
  for (std::size_t c = 0; c < channels; ++c) {
    look.sums.push_back(static_cast<double>(sums[c]) / kWhite);
    look.squares.push_back(static_cast<double>(squares[c]) / kWhite / kWhite);
  }
}

void look_at_numbers(
    std::span<const float> numbers,
    std::size_t channels,
    Look& look) {
  look.hash = hash_of(numbers.data(), numbers.size_bytes());
  const std::size_t each = numbers.size() / channels;
  look.count = static_cast<double>(each);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0;
    double square = 0;
    for (const float number : numbers.subspan(c * each, each)) {
      sum += number;
      square += double{number} * number;
    }
    look.sums.push_back(sum);
    look.squares.push_back(square);
  }
}

// The targets of one sample: the class, the pixels of each, or the values.
void look_at_target(
    const Dataset& data,
    std::span<const std::int64_t> classes,
    Look& look) {
  if (data.target_format().shape.empty()) {
    look.classes.assign(classes.begin(), classes.end());
    return;
  }
  look.classes.resize(static_cast<std::size_t>(data.num_classes()) + 1);
  for (const std::int64_t label : classes) {
    const bool is_class = label >= 0 && label < data.num_classes();
    ++look.classes[static_cast<std::size_t>(
        is_class ? label : data.num_classes())];
  }
}

Look look_at_sample(const Dataset& data, bool has_files, std::int64_t index) {
  Look look;
  const auto shape = data.sample_shape();
  const TargetFormat format = data.target_format();
  const auto numel = static_cast<std::size_t>(format.numel());
  const bool has_values = format.kind == TargetKind::kValues;
  std::vector<std::int64_t> classes(has_values ? 0 : numel);
  look.values.resize(has_values ? numel : 0);
  TargetRows rows;
  rows.classes = classes;
  rows.values = look.values;
  const std::span<const std::int64_t> one(&index, 1);
  try {
    if (has_files) {
      look_at_file(data.sample_name(index), look);
      data.read_targets(one, rows);
    } else {
      std::vector<float> numbers(
          static_cast<std::size_t>(c10::multiply_integers(shape)));
      data.read(one, /*epoch=*/0, numbers, rows);
      look_at_numbers(
          numbers,
          shape.size() == 3 ? static_cast<std::size_t>(shape[0]) : 1,
          look);
    }
    look_at_target(data, classes, look);
  } catch (const Exception& exception) {
    look = Look{.error = exception.error()};
  }
  return look;
}

std::vector<Look> looks_at(const Dataset& data, bool has_files) {
  std::vector<Look> looks(static_cast<std::size_t>(data.size()));
  for_each_sample(data.size(), [&](std::int64_t i) {
    looks[static_cast<std::size_t>(i)] = look_at_sample(data, has_files, i);
  });
  return looks;
}

PartFacts part_facts(const Dataset& data, const std::vector<Look>& looks) {
  PartFacts facts{.samples = data.size()};
  const auto count = static_cast<std::size_t>(data.num_classes());
  facts.class_counts.resize(count);
  const bool is_mask = !data.target_format().shape.empty();
  for (const Look& look : looks) {
    if (look.error || count == 0) {
      continue;
    }
    if (!is_mask) {
      ++facts.class_counts[static_cast<std::size_t>(look.classes[0])];
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      facts.class_counts[i] += look.classes[i];
    }
    facts.not_counted += look.classes[count];
  }
  return facts;
}

void add_moments(const std::vector<Look>& looks, DataFacts& facts) {
  double count = 0;
  std::vector<double> sums;
  std::vector<double> squares;
  for (const Look& look : looks) {
    sums.resize(std::max(sums.size(), look.sums.size()));
    squares.resize(sums.size());
    count += look.count;
    for (std::size_t c = 0; c < look.sums.size(); ++c) {
      sums[c] += look.sums[c];
      squares[c] += look.squares[c];
    }
  }
  for (std::size_t c = 0; c < sums.size() && count > 0; ++c) {
    const double mean = sums[c] / count;
    facts.mean.push_back(mean);
    facts.std.push_back(
        std::sqrt(std::max(0.0, squares[c] / count - mean * mean)));
  }
}

void add_sizes(
    const std::vector<Look>& looks,
    std::set<std::pair<std::int64_t, std::int64_t>>& sizes,
    DataFacts& facts) {
  for (const Look& look : looks) {
    if (look.shape.height == 0) {
      continue;
    }
    const bool is_first = sizes.empty();
    sizes.emplace(look.shape.height, look.shape.width);
    const std::int64_t pixels = look.shape.height * look.shape.width;
    if (is_first || pixels < facts.smallest.height * facts.smallest.width) {
      facts.smallest = look.shape;
    }
    if (is_first || pixels > facts.largest.height * facts.largest.width) {
      facts.largest = look.shape;
    }
  }
  facts.sizes = std::ssize(sizes);
}

void add_values(
    const Dataset& data,
    const std::vector<Look>& looks,
    DataFacts& facts) {
  constexpr std::size_t kMost = 32;
  if (facts.target.kind != TargetKind::kValues) {
    return;
  }
  const auto names = data.class_names();
  const auto count = static_cast<std::size_t>(facts.target.numel());
  for (std::size_t i = 0; i < std::min(count, kMost); ++i) {
    ValueFacts value{
        .name = i < names.size() ? names[i] : format("{}", i),
        .min = std::numeric_limits<double>::infinity(),
        .max = -std::numeric_limits<double>::infinity()};
    double samples = 0;
    for (const Look& look : looks) {
      if (look.error) {
        continue;
      }
      const double number = look.values[i];
      value.min = std::min(value.min, number);
      value.max = std::max(value.max, number);
      value.mean += number;
      ++samples;
    }
    value.mean /= std::max(samples, 1.0);
    facts.values.push_back(std::move(value));
  }
}

void add_twice(
    const DatasetParts& data,
    const std::vector<Look>& train,
    const std::vector<Look>& test,
    DataFacts& facts) {
  std::unordered_map<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < train.size(); ++i) {
    if (!train[i].error) {
      places.try_emplace(train[i].hash, i);
    }
  }
  for (std::size_t i = 0; i < test.size(); ++i) {
    const auto found = places.find(test[i].hash);
    if (!test[i].error && found != places.end()) {
      facts.twice.push_back(
          {.train = data.train->sample_name(
               static_cast<std::int64_t>(found->second)),
           .test = data.test->sample_name(static_cast<std::int64_t>(i))});
    }
  }
}

} // namespace

DataFacts look_at(const DatasetParts& data) {
  const Dataset& first = *data.train;
  DataFacts facts{
      .sample_shape = first.sample_shape(),
      .target = first.target_format(),
      .problems = data.bad_files};
  if (facts.target.kind == TargetKind::kClasses) {
    facts.class_names = first.class_names();
    for (std::int64_t i = std::ssize(facts.class_names);
         i < first.num_classes();
         ++i) {
      facts.class_names.push_back(format("{}", i));
    }
  }
  const std::vector<Look> train = looks_at(first, data.has_files);
  const std::vector<Look> test = looks_at(*data.test, data.has_files);
  facts.train = part_facts(first, train);
  facts.test = part_facts(*data.test, test);
  std::set<std::pair<std::int64_t, std::int64_t>> sizes;
  for (const std::vector<Look>* part : {&train, &test}) {
    add_sizes(*part, sizes, facts);
    for (const Look& look : *part) {
      if (look.error) {
        facts.problems.push_back(*look.error);
      }
    }
  }
  add_moments(train, facts);
  add_values(first, train, facts);
  add_twice(data, train, test, facts);
  return facts;
}

DatasetOptions plain_options(std::string_view kind, DatasetOptions options) {
  // Of other kinds the plain pixels are the default.
  const bool is_grey = kind == "mnist" || kind == "fashion-mnist";
  const bool has_own = kind != "arrays" && kind != "idx";
  const std::size_t channels = is_grey ? 1 : has_own ? 3 : 0;
  options.transform.mean.assign(channels, 0.0F);
  options.transform.std.assign(channels, 1.0F);
  // A mask that is damaged ends the opening otherwise; of other files
  // `look_at` tells it.
  options.skip_bad_images = kind == "segmentation";
  return options;
}

} // namespace lockstep::internal
