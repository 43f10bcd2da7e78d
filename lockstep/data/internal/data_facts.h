// SPDX-License-Identifier: BSD-3-Clause
//
// What a data set holds: counts, sizes, mean and std, what is damaged, what is
// in both parts. For `lockstep data`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/data/images.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// Of one part.
struct PartFacts {
  std::int64_t samples = 0;
  /// One for each class: samples, or pixels of masks. Empty without classes.
  std::vector<std::int64_t> class_counts = {};
  /// Units: pixels of masks.
  std::int64_t not_counted = 0;
};

/// One value to predict, of the training part.
struct ValueFacts {
  std::string name = {};
  double min = 0;
  double mean = 0;
  double max = 0;
};

/// A sample of the training part that is in the other one, too.
struct TwiceFound {
  std::string train = {};
  std::string test = {};

  friend bool operator==(const TwiceFound&, const TwiceFound&) = default;
};

struct DataFacts {
  /// As the loader gives samples.
  std::vector<std::int64_t> sample_shape = {};
  TargetFormat target = {};
  /// With "0", "1", ... where classes have no names.
  std::vector<std::string> class_names = {};
  PartFacts train = {};
  PartFacts test = {};
  std::vector<ValueFacts> values = {};
  /// Of image files: sizes that occur, in pixels.
  std::int64_t sizes = 0;
  ImageShape smallest = {};
  ImageShape largest = {};
  /// One for each channel, of the training part: of image files as they are,
  /// pixels / 255; of other samples as they are read. Of samples without
  /// channels one.
  std::vector<double> mean = {};
  std::vector<double> std = {};
  /// Samples that cannot be read, and labels that are no classes: one error
  /// each, in the order of the samples, training first.
  std::vector<Error> problems = {};
  /// By the bytes of the files, or of the samples' numbers.
  std::vector<TwiceFound> twice = {};
};

/// Reads all samples once, in all threads. `data` is opened with a mean of 0
/// and a std of 1. Damaged files are told, not thrown.
/// Errors: throws kIo for a disk that fails.
DataFacts look_at(const DatasetParts& data);

/// `data` opened so that `look_at` and `contact_sheet` see plain pixels.
DatasetOptions plain_options(std::string_view kind, DatasetOptions options);

/// Ten samples of the training part.
struct ContactSheet {
  Image image = {};
  /// From left to right, row by row.
  std::vector<std::string> samples = {};
};

/// Five in a row, masks in the colours of VOC's palette beside their images.
/// One that cannot be read stays grey. Numbers outside 0 to 1 are stretched.
/// Errors: throws kInvalidArgument for samples that are no images.
ContactSheet contact_sheet(const DatasetParts& data);

} // namespace lockstep::internal
