// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/same_host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string_view>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/process.h"
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
  /// Rank 0's descriptor of the communicator; -1: none.
  int communicator = -1;
  /// Its descriptor of its heap; -1: none.
  int heap = -1;
};

std::string this_host() {
  const std::string host = host_id();
  return host.empty() ? host : format("{}/{}", host, ::geteuid());
}

std::string text_of(const Guest& guest) {
  return format(
      "{} {} {} {}",
      guest.host,
      guest.pid,
      guest.communicator,
      guest.heap);
}

Guest parse_guest(const std::string& text) {
  const auto parts = split(text, ' ');
  if (parts.size() != 4) {
    return {};
  }
  return {
      .host = parts[0],
      .pid = parse_number<pid_t>(parts[1]).value_or(-1),
      .communicator = parse_number<int>(parts[2]).value_or(-1),
      .heap = parse_number<int>(parts[3]).value_or(-1)};
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

/// Another rank's memory. What it says of itself may be of a process that has
/// ended, whose number another one has.
Result<Descriptor>
open_memory(pid_t pid, int number, std::size_t expected_bytes) {
  LOCKSTEP_ASSIGN(Descriptor file, open_segment(pid, number));
  struct stat info = {};
  std::array<char, PATH_MAX> name = {};
  const std::string link = format("/proc/self/fd/{}", file.get());
  if (::fstat(file.get(), &info) != 0 ||
      ::readlink(link.c_str(), name.data(), name.size() - 1) < 0 ||
      !std::string_view(name.data()).starts_with("/memfd:lockstep") ||
      info.st_size != static_cast<off_t>(expected_bytes)) {
    return unavailable(format(
        "file {} of process {} is not the memory of a rank",
        number,
        static_cast<std::int64_t>(pid)));
  }
  return file;
}

/// Maps the communicator and the heaps, and watches the other processes.
Result<Shared> enter(
    const std::vector<Guest>& guests,
    CommunicatorOptions options,
    std::shared_ptr<Heap> own) {
  Shared shared{.heaps = {.own = std::move(own)}};
  const Guest& host = guests.front();
  const std::size_t communicator_bytes = Communicator::bytes_for(options.size);
  LOCKSTEP_ASSIGN(
      const Descriptor communicator,
      open_memory(host.pid, host.communicator, communicator_bytes));
  LOCKSTEP_ASSIGN(
      Mapping memory,
      Mapping::map(communicator, communicator_bytes));
  for (const Guest& guest : guests) {
    options.processes.emplace_back();
    if (guest.pid != ::getpid()) {
      LOCKSTEP_ASSIGN(options.processes.back(), open_process(guest.pid));
    }
    LOCKSTEP_ASSIGN(
        const Descriptor heap,
        open_memory(guest.pid, guest.heap, Heap::bytes_for_all()));
    LOCKSTEP_ASSIGN(
        Mapping of_guest,
        Mapping::map(heap, Heap::bytes_for_all(), Pages::kWhenUsed));
    shared.heaps.all.push_back(std::move(of_guest));
  }
  shared.communicator =
      std::make_unique<Communicator>(std::move(memory), std::move(options));
  return shared;
}

} // namespace

Result<Shared> share_memory(
    const internal::ExchangeTexts& exchange,
    CommunicatorOptions options) {
  Guest self{.host = this_host(), .pid = ::getpid()};
  std::string problem;
  auto heap = Heap::create();
  if (heap) {
    self.heap = (*heap)->file();
  } else {
    problem = heap.error().message;
  }
  Descriptor communicator;
  if (options.rank == 0) {
    auto made = create_segment(Communicator::bytes_for(options.size));
    if (made) {
      communicator = *std::move(made);
      self.communicator = communicator.get();
    } else {
      problem = made.error().message;
    }
  }
  std::vector<Guest> guests;
  for (const std::string& text : exchange("shm/guests", text_of(self))) {
    guests.push_back(parse_guest(text));
  }
  LOCKSTEP_TRY(check_hosts(guests));
  auto shared = enter(guests, std::move(options), heap ? *heap : nullptr);
  if (!shared && problem.empty()) {
    problem = shared.error().message;
  }
  // All have opened the others' handles before anybody goes on, and the
  // communicator before rank 0 closes its own.
  const auto problems = exchange("shm/entered", problem);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) {
      return unavailable(
          format("rank {} cannot share memory: {}", rank, problems[rank]));
    }
  }
  return shared;
}

} // namespace lockstep::dist::shm
