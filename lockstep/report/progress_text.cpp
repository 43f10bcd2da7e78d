// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/progress_text.h"

#include <algorithm>
#include <array>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

constexpr std::size_t kMeasurements = 512;
constexpr int kBarColumns = 20;
// At the end of a line: a full one would wrap, and so would the "^C" that the
// terminal itself shows behind it.
constexpr int kFreeColumns = 3;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

int filled_columns(const ProgressFacts& facts) {
  if (facts.total <= 0) {
    return 0;
  }
  const double share =
      static_cast<double>(facts.done) / static_cast<double>(facts.total);
  return static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarColumns);
}

std::string bar_text(const ProgressFacts& facts, const ProgressLook& look) {
  const int full = filled_columns(facts);
  if (!look.unicode) {
    const bool head = full < kBarColumns;
    return "[" + repeat("=", full) + (head ? ">" : "") +
           repeat(".", kBarColumns - full - (head ? 1 : 0)) + "]";
  }
  // Heavy and light horizontal line.
  const std::string heavy = repeat("\xe2\x94\x81", full);
  const std::string light = repeat("\xe2\x94\x80", kBarColumns - full);
  return look.colour ? "\x1b[32m" + heavy + "\x1b[0m" + light : heavy + light;
}

// One part of a line. Parts with a low rank go first when space is short.
struct Part {
  int rank = 0;
  std::string text = {};
  int columns = 0;
};

int total_columns(const std::vector<Part>& parts) {
  int columns = static_cast<int>(parts.size()) - 1;
  for (const Part& part : parts) {
    columns += part.columns;
  }
  return columns;
}

void drop_until_it_fits(std::vector<Part>& parts, int columns) {
  while (parts.size() > 1 && total_columns(parts) > columns) {
    parts.erase(std::ranges::min_element(parts, {}, &Part::rank));
  }
}

std::string counter_text(const ProgressFacts& facts) {
  const std::string total = std::to_string(facts.total);
  return facts.total > 0
             ? format("{:>{}}/{}", facts.done, total.size(), facts.total)
             : std::to_string(facts.done);
}

} // namespace

void RateMeter::observe(
    std::int64_t done,
    std::int64_t samples,
    Clock::time_point time) {
  const Point point{.done = done, .samples = samples, .time = time};
  if (!first_) {
    first_ = point;
  } else if (done > last_.done) {
    const double each = seconds_between(last_.time, time) /
                        static_cast<double>(done - last_.done);
    if (step_seconds_.size() < kMeasurements) {
      step_seconds_.push_back(each);
    } else {
      step_seconds_[next_] = each;
      next_ = (next_ + 1) % kMeasurements;
    }
  } else {
    return;
  }
  last_ = point;
}

std::optional<double> RateMeter::step_seconds() const {
  if (step_seconds_.empty()) {
    return std::nullopt;
  }
  std::vector<double> sorted = step_seconds_;
  const auto middle =
      sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

std::optional<double> RateMeter::samples_per_second() const {
  if (!first_ || last_.time == first_->time ||
      last_.samples == first_->samples) {
    return std::nullopt;
  }
  return static_cast<double>(last_.samples - first_->samples) /
         seconds_between(first_->time, last_.time);
}

std::optional<double> RateMeter::remaining_seconds(
    std::int64_t total,
    Clock::time_point now) const {
  const auto each = step_seconds();
  if (!each || total <= 0) {
    return std::nullopt;
  }
  const double after_last = *each * static_cast<double>(total - last_.done);
  return std::max(0.0, after_last - seconds_between(last_.time, now));
}

std::string draw_bar(const ProgressFacts& facts, const ProgressLook& look) {
  std::vector<Part> parts;
  const auto add = [&](int rank, const std::string& text) {
    if (!text.empty()) {
      parts.push_back(
          {.rank = rank, .text = text, .columns = display_width(text)});
    }
  };
  add(3, escape(facts.label));
  add(6, counter_text(facts));
  parts.push_back(
      {.rank = 1,
       .text = bar_text(facts, look),
       .columns = kBarColumns + (look.unicode ? 0 : 2)});
  if (facts.seconds) {
    add(4, (facts.finished ? "" : "eta ") + human_seconds(*facts.seconds));
  }
  if (facts.rate) {
    add(2, format("{:.0f} {}/s", *facts.rate, facts.unit));
  }
  if (facts.accuracy) {
    add(2, format("- accuracy: {:.4f}", *facts.accuracy));
  }
  if (facts.loss) {
    add(5, format("- loss: {:.4f}", *facts.loss));
  }
  drop_until_it_fits(parts, look.width - kFreeColumns);
  std::string line;
  for (const Part& part : parts) {
    line += (line.empty() ? "" : " ") + part.text;
  }
  // The last part may take all but one.
  const int columns = std::max(look.width - 1, 0);
  return total_columns(parts) <= columns
             ? line
             : line.substr(0, static_cast<std::size_t>(columns));
}

std::string plain_line(const ProgressFacts& facts) {
  std::string line = facts.label.empty() ? "" : escape(facts.label) + ": ";
  line += std::to_string(facts.done);
  if (facts.total > 0) {
    line += format("/{} ({} %)", facts.total, facts.done * 100 / facts.total);
  }
  if (facts.seconds) {
    line += facts.finished ? ", " : ", eta ";
    line += human_seconds(*facts.seconds);
  }
  if (facts.rate) {
    line += format(", {:.0f} {}/s", *facts.rate, facts.unit);
  }
  if (facts.accuracy) {
    line += format(", accuracy {:.4f}", *facts.accuracy);
  }
  if (facts.loss) {
    line += format(", loss {:.4f}", *facts.loss);
  }
  return line;
}

} // namespace lockstep::report
