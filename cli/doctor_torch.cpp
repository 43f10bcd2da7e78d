// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/doctor.h"
#include "cli/exec_train.h"
#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/internal/rank_process.h"

extern char** environ; // NOLINT(readability-identifier-naming): POSIX's

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;

// A driver that does not answer ends no doctor.
constexpr auto kPatience = std::chrono::seconds(120);

struct Answer {
  // Standard output and error together.
  std::string text = {};
  // In waitpid's form; nothing if it was still running when patience ended.
  std::optional<int> status = {};
};

// Reads until nobody writes any more, or until patience ends.
std::string read_all(int reading, Clock::time_point end) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    pollfd wait{.fd = reading, .events = POLLIN, .revents = 0};
    const int ready = ::poll(
        &wait,
        1,
        static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    const ssize_t size =
        ready <= 0 ? 0 : ::read(reading, buffer.data(), buffer.size());
    if (size <= 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

Result<Answer> ask_program(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{.op = "cli.doctor", .message = "no pipe"};
  }
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  std::vector<std::string> environment;
  for (char** row = environ; *row != nullptr; ++row) {
    environment.emplace_back(*row);
  }
  LOCKSTEP_ASSIGN(
      auto process,
      launch::RankProcess::start(
          {.program = {program, "--facts"},
           .environment = std::move(environment),
           .out = writing.get(),
           .err = writing.get()}));
  writing.reset();
  const auto end = Clock::now() + kPatience;
  Answer answer{.text = read_all(reading.get(), end)};
  pollfd wait{.fd = process.descriptor(), .events = POLLIN, .revents = 0};
  constexpr int kMoment = 5000; // ms, from its last word to its end
  ::poll(&wait, 1, kMoment);
  answer.status = process.status();
  return answer;
}

Finding torch_problem(std::string name, std::string value, std::string remedy) {
  return {
      .group = "libtorch",
      .name = std::move(name),
      .value = std::move(value),
      .health = Health::kProblem,
      .remedy = std::move(remedy)};
}

// What `lockstep-train --facts` prints: findings, on its last line.
Findings parse_facts(const std::string& text) {
  const std::size_t start = text.rfind("{\"findings\":");
  const auto json = nlohmann::json::parse(
      start == std::string::npos ? std::string_view()
                                 : std::string_view(text).substr(start),
      /*cb=*/nullptr,
      /*allow_exceptions=*/false);
  Findings findings;
  if (!json.is_object() || !json.contains("findings")) {
    return findings;
  }
  for (const auto& row : json["findings"]) {
    const auto text_at = [&row](const char* key) {
      const bool is_there = row.is_object() && row.contains(key);
      return is_there && row[key].is_string() ? row[key].get<std::string>()
                                              : std::string();
    };
    const auto* const name = std::ranges::find(kHealthNames, text_at("health"));
    if (name != kHealthNames.end()) {
      findings.push_back(
          {.group = text_at("group"),
           .name = text_at("name"),
           .value = text_at("value"),
           .health = static_cast<Health>(name - kHealthNames.begin()),
           .remedy = text_at("remedy")});
    }
  }
  return findings;
}

// Why it gave none: the loader's words, a signal, silence.
Finding no_facts(const Answer& answer) {
  const std::string said = escape(
      split(answer.text.empty() ? "it said nothing" : answer.text, '\n')
          .front(),
      160);
  if (!answer.status) {
    return torch_problem(
        "start",
        format("lockstep-train did not answer in {} s", kPatience.count()),
        "a GPU's driver may hang: 'nvidia-smi' should answer; try again with "
        "CUDA_VISIBLE_DEVICES=''");
  }
  if (said.find("error while loading shared libraries") != std::string::npos) {
    return torch_problem(
        "start",
        said,
        "LD_LIBRARY_PATH names the lib folder of LibTorch: python3 -c 'import "
        "os, torch; print(os.path.dirname(torch.__file__) + \"/lib\")'");
  }
  return torch_problem(
      "start",
      WIFSIGNALED(*answer.status) ? format(
                                        "lockstep-train died of signal {}: {}",
                                        WTERMSIG(*answer.status),
                                        said)
                                  : said,
      WIFSIGNALED(*answer.status) && WTERMSIG(*answer.status) == SIGILL
          ? "it was built for another processor: build it on this one"
          : "'lockstep-train --version' shows the same; is it of the version "
            "of "
            "'lockstep'?");
}

// NVIDIA's driver, where it is loaded: also of use where LibTorch sees no GPU.
Findings nvidia_driver(const DoctorPlaces& places, const Findings& facts) {
  const std::string text = system_line(places, "/proc/driver/nvidia/version");
  if (text.empty()) {
    return {};
  }
  Finding finding{
      .group = "libtorch",
      .name = "NVIDIA driver",
      .value = escape(text, 100)};
  const bool sees_gpu = std::ranges::any_of(facts, [](const Finding& fact) {
    return fact.name.starts_with("cuda:");
  });
  if (!sees_gpu) {
    finding.health = Health::kWarning;
    finding.remedy =
        "LibTorch sees no GPU beside it: is it a CUDA build, is the driver new "
        "enough for it, is CUDA_VISIBLE_DEVICES empty?";
  }
  return {std::move(finding)};
}

} // namespace

Findings examine_torch(const DoctorPlaces& places) {
  const std::string program = train_program();
  if (program.empty()) {
    return {
        {.group = "libtorch",
         .name = "lockstep-train",
         .value = "not found",
         .health = Health::kNote,
         .remedy =
             "checkpoints are all that this installation knows; to train, "
             "install the wheel lockstep-torch (scripts/torch_package.sh) or "
             "build Lockstep with LibTorch"}};
  }
  Findings findings{
      {.group = "libtorch", .name = "lockstep-train", .value = program}};
  const Result<Answer> answer = ask_program(program);
  Findings facts = answer ? parse_facts(answer->text) : Findings();
  if (!answer) {
    findings.push_back(torch_problem("start", answer.error().message, ""));
  } else if (facts.empty()) {
    findings.push_back(no_facts(*answer));
  }
  Findings cards = nvidia_driver(places, facts);
  for (Findings* const more : {&facts, &cards}) {
    std::ranges::move(*more, std::back_inserter(findings));
  }
  return findings;
}

} // namespace lockstep::cli
