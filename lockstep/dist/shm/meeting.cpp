// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/shm/internal/meeting.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "lockstep/base/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::shm {
namespace {

Error unavailable(std::string message) {
  return {
      .code = ErrorCode::kUnavailable,
      .op = "dist.shm",
      .message = std::move(message),
      .hint = "use the backend gloo",
      .detail = "E_BACKEND"};
}

/// What a rank says of itself.
struct Guest {
  /// Equal for processes that can share memory: the running kernel, its view
  /// of processes, the user.
  std::string host = {};
  pid_t pid = -1;
  /// Rank 0's descriptor of the memory; -1: none.
  int file = -1;
};

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat processes = {};
  if (::stat("/proc/self/ns/pid", &processes) != 0) {
    return {};
  }
  return format("{}/{}/{}", boot, processes.st_ino, ::geteuid());
}

std::string text_of(const Guest& guest) {
  return format("{} {} {}", guest.host, guest.pid, guest.file);
}

Guest parse_guest(const std::string& text) {
  const auto parts = split(text, ' ');
  if (parts.size() != 3) {
    return {};
  }
  return {
      .host = parts[0],
      .pid = parse_number<pid_t>(parts[1]).value_or(-1),
      .file = parse_number<int>(parts[2]).value_or(-1)};
}

Status check_hosts(const std::vector<Guest>& guests) {
  for (std::size_t rank = 0; rank < guests.size(); ++rank) {
    if (guests[rank].host.empty() || guests[rank].host != guests.front().host) {
      return unavailable(format(
          "ranks 0 and {} cannot share memory: another host, container or user",
          rank));
    }
  }
  return {};
}

/// Maps the memory of rank 0 and watches the other processes.
Result<std::unique_ptr<Room>> enter(
    const std::vector<Guest>& guests,
    RoomOptions options) {
  const Guest& host = guests.front();
  LOCKSTEP_ASSIGN(const Descriptor file, open_segment(host.pid, host.file));
  LOCKSTEP_ASSIGN(
      Mapping memory,
      Mapping::map(file, Room::bytes_for(options.size)));
  for (const Guest& guest : guests) {
    options.processes.emplace_back();
    if (guest.pid != ::getpid()) {
      LOCKSTEP_ASSIGN(options.processes.back(), open_process(guest.pid));
    }
  }
  return std::make_unique<Room>(std::move(memory), std::move(options));
}

} // namespace

Result<std::unique_ptr<Room>> open_room(
    const internal::ExchangeTexts& exchange,
    RoomOptions options) {
  Guest self{.host = this_host(), .pid = ::getpid()};
  Descriptor file;
  std::string problem;
  if (options.rank == 0) {
    auto made = create_segment(Room::bytes_for(options.size));
    if (made) {
      file = *std::move(made);
      self.file = file.get();
    } else {
      problem = made.error().message;
    }
  }
  std::vector<Guest> guests;
  for (const std::string& text : exchange("shm/guests", text_of(self))) {
    guests.push_back(parse_guest(text));
  }
  LOCKSTEP_TRY(check_hosts(guests));
  auto room = enter(guests, std::move(options));
  if (!room && problem.empty()) {
    problem = room.error().message;
  }
  // All have opened the others' handles before anybody goes on, and the memory
  // before rank 0 closes its own.
  const auto problems = exchange("shm/entered", problem);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) {
      return unavailable(
          format("rank {} cannot share memory: {}", rank, problems[rank]));
    }
  }
  return room;
}

} // namespace lockstep::dist::shm
