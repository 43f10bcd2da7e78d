// SPDX-License-Identifier: BSD-3-Clause
//
// A confusion matrix as an SVG file: which class was taken for which.
//   std::string svg = draw_confusion("runs/a", {"cat", "dog"},
//                                    {{20, 1}, {0, 19}});
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::report {

/// A whole SVG file. A row for each class as the data have it, a column for
/// each as the model says; as many counts in each row as there are names. A
/// cell is as dark as its share of the row; up to 40 classes it has its number,
/// too. Only differences of brightness count: for colour-blind people and grey
/// printers.
std::string draw_confusion(
    std::string_view title,
    std::span<const std::string> names,
    const std::vector<std::vector<double>>& counts);

} // namespace lockstep::report
