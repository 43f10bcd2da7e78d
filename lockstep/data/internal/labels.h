// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers of classes as files have them: how many there are, and which are
// wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::internal {

/// One label for each sample of a part.
struct PartLabels {
  std::span<std::int64_t> labels = {};
  /// Where they are from, for messages.
  std::string file = {};
};

/// What the labels of all parts say.
struct Classes {
  std::int64_t count = 0;
  /// "1", "2", ... where the labels begin with 1; else empty.
  std::vector<std::string> names = {};
  /// What was decided, for people.
  std::vector<std::string> notes = {};
};

/// As many classes as the largest label of all parts says. If no label is 0,
/// class 0 would have no samples: labels from 1 are then counted down by one,
/// in place, and a note tells it, as it tells which classes have no samples.
/// Errors: throws kMismatch (E_LABEL), naming sample and file, for a label
/// below 0, and for labels that go up to more than 1000 and more than there are
/// samples: these are no classes.
Classes count_classes(std::span<const PartLabels> parts);

/// The same where the number of classes is known.
/// Errors: throws kMismatch (E_LABEL) for a label that is no class.
void check_labels(const PartLabels& part, std::int64_t num_classes);

/// Errors: throws kMismatch (E_LABEL) for a number in a mask that is neither a
/// class nor 255 nor below 0 (not counted).
void check_mask(
    std::span<const std::int64_t> mask,
    std::int64_t num_classes,
    const std::string& sample,
    const std::string& file);

/// Errors: throws kMismatch (E_LABEL).
[[noreturn]] void
bad_label(std::string message, const std::string& file, std::string hint = {});

} // namespace lockstep::internal
