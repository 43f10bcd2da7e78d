// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/peers.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

constexpr std::chrono::milliseconds kViewTime{500};

std::string first_line(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

bool has_ended(const Descriptor& end) {
  pollfd entry{end.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool is_stopped(pid_t pid) {
  // "4242 (name) T ...", and the name may hold anything.
  const std::string line = first_line(format("/proc/{}/stat", pid).c_str());
  const auto name_end = line.rfind(')');
  const char state =
      name_end == std::string::npos || name_end + 2 >= line.size()
          ? ' '
          : line[name_end + 2];
  return state == 'T' || state == 't';
}

std::string presence_key(int rank) {
  return format("lockstep/presence/{}", rank);
}

std::string view_key(int rank) {
  return format("lockstep/view/{}", rank);
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// A line for the store; names of groups and collectives hold no tabs.
std::string line_of(const PeerView& view) {
  const FlightEntry last = view.last.value_or(FlightEntry());
  return format(
      "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
      view.rank,
      static_cast<int>(view.kind),
      last.number,
      last.start,
      last.end,
      last.name.view(),
      last.purpose.view(),
      last.group.view(),
      view.first_open);
}

std::optional<PeerView> parse_line(const std::string& line) {
  const auto parts = split(line, '\t');
  if (parts.size() != 9) {
    return std::nullopt;
  }
  PeerView view{
      .rank = parse_number<int>(parts[0]).value_or(-1),
      .kind = static_cast<PeerKind>(
          parse_number<int>(parts[1], 0, static_cast<int>(PeerKind::kGone))
              .value_or(0))};
  FlightEntry last{
      .number = parse_number<std::uint64_t>(parts[2]).value_or(0),
      .start = parse_number<std::int64_t>(parts[3]).value_or(0),
      .end = parse_number<std::int64_t>(parts[4]).value_or(0),
      .name = parts[5],
      .purpose = parts[6],
      .group = parts[7]};
  if (last.number != 0) {
    view.last = last;
    view.first_open = parse_number<std::uint64_t>(parts[8]).value_or(0);
  }
  return view;
}

} // namespace

Peers::Peers(
    int rank,
    int size,
    c10::intrusive_ptr<c10d::Store> store,
    const FlightLog& log)
    : rank_(rank),
      store_(std::move(store)),
      log_(log),
      peers_(static_cast<std::size_t>(size)) {
  const std::string text = format(
      "{}\n{}\n{}\n{}",
      host_id(),
      host_name(),
      ::getpid(),
      log_.descriptor());
  store_->set(presence_key(rank), bytes_of(text));
}

void Peers::attach() {
  if (is_attached_) {
    return;
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const std::string key = presence_key(static_cast<int>(i));
    if (store_->check({key})) { // not of a Python rank
      const auto bytes = store_->get(key);
      attach_one(peers_[i], std::string(bytes.begin(), bytes.end()));
    }
    has_remote_ |= !peers_[i].host.empty() && peers_[i].log == nullptr;
  }
  if (has_remote_) {
    // A connection of its own: this one may be waiting for something else. Who
    // asks looks after collectives, and asks again.
    store_ = store_->clone();
    store_->setTimeout(kViewTime);
  }
  is_attached_ = true;
}

void Peers::attach_one(Peer& peer, const std::string& text) const {
  const auto parts = split(text, '\n');
  if (parts.size() != 4) {
    return;
  }
  peer.host = parts[1];
  const auto pid = parse_number<pid_t>(parts[2], 1);
  if (!pid || parts[0].empty() || parts[0] != host_id()) {
    return;
  }
  peer.pid = *pid;
  if (peer.pid != ::getpid()) {
    peer.end = process_handle(peer.pid);
  }
  peer.log = FlightLog::open(format("/proc/{}/fd/{}", peer.pid, parts[3]));
}

PeerView Peers::view_of(
    int rank,
    const Peer& peer,
    std::optional<std::string_view> group) const {
  if (peer.log == nullptr) {
    const std::scoped_lock lock(told_);
    PeerView view = peer.told;
    view.rank = rank;
    view.host = peer.host;
    if (group && view.last && view.last->group.view() != *group) {
      view.last.reset();
    }
    return view;
  }
  PeerView view{
      .rank = rank,
      .kind = PeerKind::kRunning,
      .host = peer.host,
      .pid = peer.pid,
      .last = group ? peer.log->last_of(*group) : peer.log->last()};
  if (view.last) {
    view.first_open = peer.log->first_open(view.last->group.view());
  }
  view.blame = peer.log->blame();
  if (group) {
    view.difference = log_.first_difference(*peer.log, *group);
  }
  const RankState state = peer.log->state();
  if (state != RankState::kRunning) {
    view.kind = state == RankState::kLeft ? PeerKind::kLeft : PeerKind::kFailed;
  } else if (peer.end && has_ended(peer.end)) {
    view.kind = PeerKind::kGone;
  } else if (peer.end && is_stopped(peer.pid)) {
    view.kind = PeerKind::kStopped;
  }
  return view;
}

std::vector<PeerView> Peers::look(std::string_view group) const {
  std::vector<PeerView> views;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (static_cast<int>(i) != rank_) {
      views.push_back(view_of(static_cast<int>(i), peers_[i], group));
    }
  }
  return views;
}

bool Peers::agree(const FlightEntry& entry) const {
  // Of two that begin at once, one at least sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return std::ranges::all_of(peers_, [&](const Peer& peer) {
    const auto same = peer.log == nullptr
                          ? std::nullopt
                          : peer.log->find(entry.group.view(), entry.number);
    return !same || same->matches(entry);
  });
}

std::vector<int> Peers::watched_ends() const {
  std::vector<int> descriptors;
  for (const Peer& peer : peers_) {
    if (peer.end && !has_ended(peer.end)) {
      descriptors.push_back(peer.end.get());
    }
  }
  return descriptors;
}

void Peers::exchange_views() {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].log != nullptr) {
      lines.push_back(
          line_of(view_of(static_cast<int>(i), peers_[i], std::nullopt)));
    }
  }
  store_->set(view_key(rank_), bytes_of(join(lines, "\n")));
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const std::string key = view_key(static_cast<int>(i));
    if (peers_[i].log != nullptr || !store_->check({key})) {
      continue;
    }
    const auto bytes = store_->get(key);
    const std::string text(bytes.begin(), bytes.end());
    for (const std::string& line : split(text, '\n')) {
      const auto view = parse_line(line);
      if (view && view->rank >= 0 &&
          static_cast<std::size_t>(view->rank) < peers_.size()) {
        const std::scoped_lock lock(told_);
        peers_[static_cast<std::size_t>(view->rank)].told = *view;
      }
    }
  }
}

const FlightLog* Peers::log_of(int rank) const {
  return peers_[static_cast<std::size_t>(rank)].log.get();
}

} // namespace lockstep::dist::internal
