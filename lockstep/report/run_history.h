// SPDX-License-Identifier: BSD-3-Clause
//
// What a run has measured, from the lines of its metrics.jsonl: few enough
// numbers to be drawn, however long the run is.
//   RunHistory history;
//   history.add(R"({"event":"step","step":50,"loss":0.9})");
//   history.steps().column("loss")   // {0.9}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::report {

/// A table of numbers with named columns; NaN where a row lacks one.
class NumberTable {
 public:
  using Row = std::vector<std::pair<std::string, double>>;

  void add(const Row& row);
  /// Puts the average of each two rows in their place.
  void halve();

  [[nodiscard]] std::size_t rows() const {
    return rows_;
  }
  /// In the order in which they came.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Empty if it is not there.
  [[nodiscard]] std::vector<double> column(std::string_view name) const;
  /// Whether the column has a number that is finite.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::vector<double>>> columns_ = {};
  std::size_t rows_ = 0;
};

/// Threads: one at a time.
class RunHistory {
 public:
  /// One line of metrics.jsonl; any other is left out.
  void add(std::string_view line);
  /// All lines of the file.
  void add_all(std::string_view text);

  /// A row for each epoch.
  [[nodiscard]] const NumberTable& epochs() const {
    return epochs_;
  }
  /// At most 4096 rows, each for one or the average of several logged steps.
  [[nodiscard]] const NumberTable& steps() const {
    return steps_;
  }
  /// The column by which the best epoch is chosen: "val_top1"; empty: unknown.
  [[nodiscard]] const std::string& best_by() const {
    return best_by_;
  }

 private:
  void add_step(const NumberTable::Row& row);

  NumberTable epochs_;
  NumberTable steps_;
  /// Of the row that is not full: logged steps that it has, of how many.
  NumberTable pending_;
  std::size_t stride_ = 1;
  std::string best_by_ = {};
};

} // namespace lockstep::report
