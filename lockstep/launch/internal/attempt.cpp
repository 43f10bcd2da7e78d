// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/error_file.h"
#include "lockstep/launch/internal/rank_environment.h"

namespace lockstep::launch {
namespace {

// Between a failure and the end of the other ranks.
constexpr std::chrono::milliseconds kPatience{300};

constexpr std::array kOutputNames{"", "stdout.log", "stderr.log"};

std::string
replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// "[default0]:", or as TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE says.
std::string line_prefix(const LaunchOptions& options, int local_rank) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  const char* pattern = std::getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  std::string text =
      pattern == nullptr ? "[${role_name}${local_rank}]:" : pattern;
  text = replaced(std::move(text), "${role_name}", options.role);
  text = replaced(std::move(text), "${local_rank}", std::to_string(local_rank));
  text = replaced(std::move(text), "${hostname}", host_name());
  return replaced(
      std::move(text),
      "${rank}",
      std::to_string(options.rank_of(local_rank)));
}

// As torchrun has it: each rank may have a file of its own.
std::vector<std::string> program_of(
    const LaunchOptions& options,
    int local_rank) {
  std::vector<std::string> words = options.program;
  for (std::string& word : words) {
    word =
        replaced(std::move(word), "${local_rank}", std::to_string(local_rank));
  }
  return words;
}

} // namespace

SignalReader::SignalReader(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) { // NOLINT(*-union-access): its interface
      ::sigaddset(&set, number);
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = Descriptor(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

SignalReader::~SignalReader() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

int SignalReader::next() {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof info) != sizeof info) {
    return 0;
  }
  has_come_ = true;
  return static_cast<int>(info.ssi_signo);
}

Attempt::Attempt(
    const LaunchOptions& options,
    AttemptPlace place,
    SignalReader& signals,
    Consoles& consoles,
    LogSink& log)
    : options_(options),
      place_(std::move(place)),
      signals_(signals),
      consoles_(consoles),
      log_(log) {}

Result<AttemptEnd> Attempt::run() {
  for (int rank = 0; rank < options_.local_size; ++rank) {
    LOCKSTEP_TRY(start(rank)); // the others' destructors end them
  }
  while (!running_.empty()) {
    wait();
    take_signals();
    consoles_.flush();
    copy_outputs();
    take_ends();
    stop_followers();
    kill_late_ones();
  }
  // Not up to the end: what a rank left behind may hold a pipe.
  std::ranges::for_each(copies_, &OutputCopy::finish);
  const bool has_failed = patience_.has_value(); // and all ended within it
  if (!is_stopping_ && !has_failed) {
    std::ranges::for_each(ended_, &RankProcess::release);
  }
  ended_.clear();
  return std::move(end_);
}

Status Attempt::start(int local_rank) {
  const std::string folder = format("{}/{}", place_.folder, local_rank);
  LOCKSTEP_TRY(real_fs().create_directories(folder));
  const OutputPlaces places = options_.places_of(local_rank);
  ProcessStart start{
      .program = program_of(options_, local_rank),
      .environment = merged_environment(rank_variables(
          options_,
          {.local_rank = local_rank,
           .attempt = place_.number,
           .master_port = place_.master_port,
           .error_file = format("{}/{}", folder, kErrorFile)}))};
  LOCKSTEP_ASSIGN(
      start.out,
      open_output(local_rank, places.out, STDOUT_FILENO));
  LOCKSTEP_ASSIGN(
      start.err,
      open_output(local_rank, places.err, STDERR_FILENO));
  LOCKSTEP_ASSIGN(RankProcess process, RankProcess::start(start));
  handed_over_.clear();
  running_.push_back({.process = std::move(process), .local_rank = local_rank});
  return {};
}

// What the rank is given as its output; -1 for the launcher's own.
Result<int>
Attempt::open_output(int local_rank, OutputPlace place, int console) {
  constexpr mode_t kMode = 0666;
  if (place == OutputPlace::kConsole) {
    return -1;
  }
  const std::string path = format(
      "{}/{}/{}",
      place_.folder,
      local_rank,
      kOutputNames[static_cast<std::size_t>(console)]);
  Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode));
  if (!file) {
    return errno_error("run.log", path, errno);
  }
  if (place == OutputPlace::kFile) {
    return handed_over_.emplace_back(std::move(file)).get();
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return errno_error("run.log", path, errno);
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  copies_.emplace_back(
      Descriptor(ends[0]),
      std::move(file),
      console == STDOUT_FILENO ? consoles_.out : consoles_.err,
      line_prefix(options_, local_rank));
  return handed_over_.emplace_back(ends[1]).get();
}

// Until something has happened.
void Attempt::wait() {
  std::vector<pollfd> entries{{signals_.descriptor(), POLLIN, 0}};
  for (const Running& rank : running_) {
    entries.push_back({rank.process.descriptor(), POLLIN, 0});
  }
  for (const OutputCopy& copy : copies_) {
    entries.push_back({copy.descriptor(), POLLIN, 0});
  }
  for (const Console* console : {&consoles_.out, &consoles_.err}) {
    const int number = console->is_behind() ? console->descriptor() : -1;
    entries.push_back({number, POLLOUT, 0});
  }
  int timeout = -1;
  if (const auto& next = patience_ ? patience_ : deadline_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
    timeout = std::max(0, static_cast<int>(left.count()));
  }
  ::poll(entries.data(), entries.size(), timeout);
}

void Attempt::take_signals() {
  while (const int number = signals_.next()) {
    const bool is_again = end_.signal != 0;
    if (!is_again) {
      log_.write(
          LogLevel::kWarning,
          format(
              "{}: passed on to {}",
              signal_name(number),
              counted(running_.size(), "rank")));
    }
    end_.signal = is_again ? end_.signal : number;
    if (is_again && number == SIGINT) {
      log_.write(LogLevel::kWarning, "killing all ranks");
      stop(SIGKILL);
    } else {
      stop(number);
    }
  }
}

void Attempt::copy_outputs() {
  std::erase_if(copies_, [](OutputCopy& copy) {
    const bool has_more = copy.copy();
    if (!has_more) {
      copy.finish();
    }
    return !has_more;
  });
}

void Attempt::take_ends() {
  // Those that ended on their own come before those that are stopped now.
  for (Running& rank : running_) {
    if (const auto status = rank.process.status()) {
      record(rank, *status);
    }
  }
  std::erase_if(running_, [](const Running& rank) {
    return rank.process.pid() < 0; // moved to those that have ended
  });
  if (!is_stopping_ && !patience_ && root_cause(end_.ends) != nullptr) {
    patience_ = Clock::now() + kPatience;
  }
}

// The other ranks notice by themselves, and say where they were.
void Attempt::stop_followers() {
  if (patience_ && Clock::now() >= *patience_) {
    stop(SIGTERM);
  }
}

void Attempt::record(Running& rank, int status) {
  RankEnd end{
      .rank = options_.rank_of(rank.local_rank),
      .local_rank = rank.local_rank,
      .pid = rank.process.pid(),
      .status = status,
      .time = std::chrono::system_clock::now(),
      .was_stopped = is_stopping_,
      .folder = format("{}/{}", place_.folder, rank.local_rank)};
  ended_.push_back(std::move(rank.process));
  read_error_file(real_fs(), end);
  if (const auto files = real_fs().list(end.folder); files && files->empty()) {
    end.folder.clear();
  }
  end_.ends.push_back(std::move(end));
}

void Attempt::stop(int signal) {
  patience_.reset();
  for (const Running& rank : running_) {
    rank.process.signal(signal);
    rank.process.signal(SIGCONT); // one that is stopped takes no other
  }
  if (!is_stopping_) {
    deadline_ = Clock::now() + options_.shutdown_timeout;
  }
  is_stopping_ = true;
}

void Attempt::kill_late_ones() {
  if (deadline_ && Clock::now() >= *deadline_ && !running_.empty()) {
    log_.write(
        LogLevel::kWarning,
        format(
            "{} did not end within {} s; killing",
            counted(running_.size(), "rank"),
            std::chrono::duration<double>(options_.shutdown_timeout).count()));
    stop(SIGKILL);
    deadline_.reset();
  }
}

} // namespace lockstep::launch
