// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/diagnosis.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

constexpr std::size_t kMostNamed = 4;
constexpr double kNsPerSecond = 1e9;

bool has_begun(const PeerView& view, const Stuck& stuck) {
  return view.last && view.last->number >= stuck.entry.number;
}

bool has_ended(const PeerView& view, const Stuck& stuck) {
  return view.last && view.first_open > stuck.entry.number;
}

std::string call_text(const FlightEntry& entry) {
  return format(
      "{}{}{} {}",
      entry.text(),
      entry.dtype.view().empty() ? "" : " of ",
      entry.dtype.view(),
      entry.sizes.view());
}

std::string process_text(const PeerView& view) {
  return view.pid != 0
             ? format("process {}", static_cast<std::int64_t>(view.pid))
             : format("its process on host {}", escape(view.host));
}

std::string where_text(const PeerView& view, const Stuck& stuck) {
  if (!view.last) {
    return "it has begun no collective";
  }
  const std::int64_t since =
      view.last->end == 0 ? view.last->start : view.last->end;
  return format(
      "its last collective: {}, {} {:.1f} s ago",
      view.last->text(),
      view.last->end == 0 ? "begun" : "ended",
      static_cast<double>(std::max<std::int64_t>(stuck.now - since, 0)) /
          kNsPerSecond);
}

std::string gone_text(const PeerView& view, const Stuck& stuck) {
  return format(
      "rank {} is gone ({} has ended); {}",
      view.rank,
      process_text(view),
      where_text(view, stuck));
}

std::string left_text(const PeerView& view, const Stuck& stuck) {
  return format(
      "rank {} has left the job ({}); {}",
      view.rank,
      process_text(view),
      where_text(view, stuck));
}

std::string other_text(const PeerView& view, const Stuck& /*stuck*/) {
  const CollectiveMismatch found =
      view.difference.value_or(CollectiveMismatch());
  return format(
      "rank {} does something else: its collective {}, here {}",
      view.rank,
      call_text(found.other),
      call_text(found.own));
}

std::string stopped_text(const PeerView& view, const Stuck& stuck) {
  return format(
      "rank {} is stopped ({}: SIGSTOP or a debugger); {}",
      view.rank,
      process_text(view),
      where_text(view, stuck));
}

std::string late_text(const PeerView& view, const Stuck& stuck) {
  return format(
      "rank {} is late ({}); {}",
      view.rank,
      process_text(view),
      where_text(view, stuck));
}

std::string failed_text(const PeerView& view, const Stuck& stuck) {
  return format(
      "rank {} has given up before ({}); {}",
      view.rank,
      process_text(view),
      where_text(view, stuck));
}

std::string quoted_text(const PeerView& view, const Stuck& /*stuck*/) {
  return format(
      "rank {} has given up before: {}",
      view.rank,
      view.blame.value_or(Blame()).text.view());
}

std::string unknown_text(const PeerView& view, const Stuck& /*stuck*/) {
  return view.host.empty()
             ? format("rank {} tells nothing about itself", view.rank)
             : format(
                   "rank {} on host {} does not answer",
                   view.rank,
                   escape(view.host));
}

// In an earlier collective, for one of whom nothing is heard.
bool waits_itself(const PeerView& view, const Stuck& stuck) {
  return stuck.has_unknown && view.last && view.last->end == 0;
}

// Of one who has ended this collective the last bytes may still come, unless
// the connection broke.
bool is_kind(const PeerView& view, const Stuck& stuck, PeerKind kind) {
  return view.kind == kind && (!stuck.is_timeout || !has_ended(view, stuck));
}

/// A way to keep the others from going on.
struct Way {
  bool (*applies)(const PeerView& view, const Stuck& stuck) = nullptr;
  std::string (*text)(const PeerView& view, const Stuck& stuck) = nullptr;
  Certainty certainty = Certainty::kGuess;
  bool is_mismatch = false;
  /// The first rank has said why; the others mostly say the same.
  bool is_quoted = false;
};

/// The worst first.
const std::array kWays{
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return is_kind(view, stuck, PeerKind::kGone);
            },
        .text = gone_text,
        .certainty = Certainty::kSure},
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return is_kind(view, stuck, PeerKind::kLeft);
            },
        .text = left_text,
        .certainty = Certainty::kSure},
    Way{.applies =
            [](const PeerView& view, const Stuck& /*stuck*/) {
              return view.difference.has_value();
            },
        .text = other_text,
        .certainty = Certainty::kSure,
        .is_mismatch = true},
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return is_kind(view, stuck, PeerKind::kStopped);
            },
        .text = stopped_text,
        .certainty = Certainty::kLate},
    // A connection that breaks was somebody's; one who is late breaks none.
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return !stuck.is_timeout && !stuck.is_follow_on &&
                     view.kind == PeerKind::kUnknown;
            },
        .text = unknown_text},
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return (stuck.is_timeout || stuck.is_follow_on) &&
                     view.kind == PeerKind::kRunning &&
                     !has_begun(view, stuck) && !waits_itself(view, stuck);
            },
        .text = late_text,
        .certainty = Certainty::kLate},
    Way{.applies =
            [](const PeerView& view, const Stuck& /*stuck*/) {
              return view.kind == PeerKind::kUnknown;
            },
        .text = unknown_text},
    Way{.applies =
            [](const PeerView& view, const Stuck& /*stuck*/) {
              return view.blame.has_value();
            },
        .text = quoted_text,
        .is_quoted = true},
    Way{.applies =
            [](const PeerView& view, const Stuck& stuck) {
              return is_kind(view, stuck, PeerKind::kFailed);
            },
        .text = failed_text}};

Answer answer_of(
    const Way& way,
    const std::vector<const PeerView*>& views,
    const Stuck& stuck) {
  const PeerView& first = *views.front();
  if (way.is_quoted) {
    const Blame blame = first.blame.value_or(Blame());
    return {
        .certainty = way.certainty,
        .text = way.text(first, stuck),
        .cause = std::string(blame.text.view()),
        .is_mismatch = blame.is_mismatch};
  }
  std::vector<std::string> texts;
  for (const PeerView* view : views | std::views::take(kMostNamed)) {
    texts.push_back(way.text(*view, stuck));
  }
  if (views.size() > kMostNamed) {
    texts.push_back(format("and {} more", views.size() - kMostNamed));
  }
  const std::string text = join(texts, "; ");
  return {
      .certainty = way.certainty,
      .text = text,
      .cause = text,
      .is_mismatch = way.is_mismatch};
}

} // namespace

Answer who_is_missing(Stuck stuck, const std::vector<PeerView>& views) {
  const auto has = [&](PeerKind kind) {
    return std::ranges::any_of(views, [&](const PeerView& view) {
      return view.kind == kind;
    });
  };
  stuck.is_follow_on = has(PeerKind::kFailed);
  stuck.has_unknown = has(PeerKind::kUnknown);
  for (const Way& way : kWays) {
    std::vector<const PeerView*> found;
    for (const PeerView& view : views) {
      if (std::ranges::find(stuck.ranks, view.rank) != stuck.ranks.end() &&
          way.applies(view, stuck)) {
        found.push_back(&view);
      }
    }
    if (!found.empty()) {
      return answer_of(way, found, stuck);
    }
  }
  return {};
}

} // namespace lockstep::dist::internal
