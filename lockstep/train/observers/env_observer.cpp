// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/env_observer.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/internal/process.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/device/internal/gpu_names.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/train/checkpoints/run_folder.h"

namespace lockstep::train {
namespace {

using nlohmann::ordered_json;

/// A file of the machine or of git, whatever its size says; empty without one.
std::string text_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string first_line(const std::filesystem::path& path) {
  return split(text_of(path), '\n').front();
}

/// The arguments of this process, each as it was typed.
std::vector<std::string> command_line() {
  std::string text = text_of("/proc/self/cmdline");
  if (text.ends_with('\0')) {
    text.pop_back();
  }
  return split(text, '\0');
}

/// The commit that the working directory has checked out; empty without one.
/// Reads git's files: starting git would cost more than all the rest.
std::string git_commit() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = fs::current_path(ignored);
  while (!fs::exists(folder / ".git", ignored)) {
    if (folder == folder.parent_path()) {
      return {};
    }
    folder = folder.parent_path();
  }
  fs::path git = folder / ".git";
  constexpr std::string_view kElsewhere = "gitdir: ";
  if (const std::string line = first_line(git); line.starts_with(kElsewhere)) {
    git = folder / line.substr(kElsewhere.size());
  }
  const std::string common = first_line(git / "commondir");
  constexpr std::string_view kBranch = "ref: ";
  std::string head = first_line(git / "HEAD");
  if (!head.starts_with(kBranch)) {
    return head;
  }
  const std::string branch = head.substr(kBranch.size());
  const fs::path refs = common.empty() ? git : git / common;
  if (std::string commit = first_line(refs / branch); !commit.empty()) {
    return commit;
  }
  for (const std::string& line : split(text_of(refs / "packed-refs"), '\n')) {
    if (line.ends_with(" " + branch)) {
      return line.substr(0, line.find(' '));
    }
  }
  return {};
}

ordered_json args_of(const TrainConfig& config) {
  ordered_json args = ordered_json::object();
  for (const Flag& flag : flag_table()) {
    if (flag.is_saved) {
      std::visit(
          [&](auto member) { args[flag.key()] = config.*member; },
          flag.member);
    }
  }
  return args;
}

/// Where settings come from that something has set; those of a run that goes on
/// are still from where the run before had them, if its file `old` tells.
ordered_json sources_of(const SettingSources& sources, const std::string& old) {
  const ordered_json file = ordered_json::parse(
      old,
      /*cb=*/nullptr,
      /*allow_exceptions=*/false);
  const bool tells = file.is_object() && file.contains("sources") &&
                     file["sources"].is_object();
  ordered_json json = ordered_json::object();
  for (const Flag& flag : flag_table()) {
    std::string place = sources.of(flag, "");
    if (place == kFromCheckpoint && tells) {
      place = file["sources"].value(flag.key(), "");
    }
    if (!place.empty()) {
      json[flag.key()] = std::move(place);
    }
  }
  return json;
}

ordered_json data_of(const DataRecord& data) {
  ordered_json json = {
      {"train_samples", data.train_samples},
      {"test_samples", data.test_samples},
      {"sample_shape", data.sample_shape},
      {"num_classes", data.num_classes}};
  const auto add_digest = [&](std::string_view name, std::uint64_t digest) {
    if (digest != 0) {
      json[std::string(name)] = format("{:016x}", digest);
    }
  };
  add_digest("train_digest", data.train_digest);
  add_digest("test_digest", data.test_digest);
  return json;
}

std::string now_text() {
  return utc_text(utc_now(), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z");
}

// Paths may hold any bytes; JSON may not.
std::string text_of(const ordered_json& file) {
  using Replace = ordered_json::error_handler_t;
  return file.dump(
             /*indent=*/2,
             ' ',
             /*ensure_ascii=*/false,
             Replace::replace) +
         "\n";
}

/// Adds to the newest start how it ended.
void add_end(RunFiles& files, const std::string& path, ordered_json end) {
  ordered_json file = ordered_json::parse(
      files.read(path),
      /*cb=*/nullptr,
      /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("starts") ||
      !file["starts"].is_array() || file["starts"].empty()) {
    return; // what is there is none of ours
  }
  end["time"] = now_text();
  file["starts"].back()["end"] = std::move(end);
  files.replace(path, text_of(file));
}

/// What can differ from one start to the next.
ordered_json describe(const StartRecord& record) {
  ::utsname system = {};
  static_cast<void>(::uname(&system));
  ordered_json start = {
      {"started", now_text()},
      {"step", record.step},
      {"command", command_line()},
      {"lockstep", std::string(kVersion)},
      {"torch", torch_library_version()},
      {"compiler", std::string(kCompiler)},
      {"host", system.nodename},
      {"pid", ::getpid()},
      {"os",
       format("{} {} {}", system.sysname, system.release, system.machine)},
      {"cpu",
       {{"model",
         cpu_fact(
             text_of(std::filesystem::path("/proc/cpuinfo")),
             "model name")},
        {"cores", std::thread::hardware_concurrency()},
        {"isa", at::get_cpu_capability()}}},
      {"threads", at::get_num_threads()},
      {"devices", record.devices},
      {"ranks", record.ranks},
      {"data", data_of(record.data)},
      {"best_by", record.best_by.column},
      {"better",
       record.best_by.better == Better::kHigher ? "higher" : "lower"}};
  const std::vector<c10::Device> devices(
      record.devices.begin(),
      record.devices.end());
  if (const std::string gpu = gpu_names(devices); !gpu.empty()) {
    start["gpu"] = gpu;
  }
  if (const std::string commit = git_commit(); !commit.empty()) {
    start["git"] = commit;
  }
  return start;
}

/// The starts that an earlier file lists; none if it is none of ours.
ordered_json earlier_starts(const std::string& text) {
  const ordered_json old = ordered_json::parse(
      text,
      /*cb=*/nullptr,
      /*allow_exceptions=*/false);
  const bool has_list =
      old.is_object() && old.contains("starts") && old["starts"].is_array();
  return has_list ? old["starts"] : ordered_json::array();
}

} // namespace

EnvObserver::EnvObserver(
    RunFiles& files,
    const std::string& folder,
    TrainConfig config,
    SettingSources sources)
    : files_(files),
      path_(format("{}/{}", folder, kEnvFile)),
      config_(std::move(config)),
      sources_(std::move(sources)) {}

void EnvObserver::on_start(const StartRecord& record) {
  ordered_json start = describe(record);
  ordered_json file = start;
  file["args"] = args_of(config_);
  file["sources"] = sources_of(sources_, files_.read(path_));
  file["starts"] = earlier_starts(files_.read(path_));
  file["starts"].push_back(std::move(start));
  files_.replace(path_, text_of(file));
}

void EnvObserver::on_end(const EndRecord& record) {
  add_end(
      files_,
      path_,
      {{"how", record.was_stopped ? "interrupted" : "finished"},
       {"why", record.why},
       {"epochs", record.epochs}});
}

void EnvObserver::on_failure(const Error& error) {
  add_end(
      files_,
      path_,
      {{"how", "failed"},
       {"why", short_reason(error)},
       {"error", error.detail},
       {"message", to_string(error)}});
}

std::string short_reason(const Error& error) {
  constexpr std::string_view kLoss = "the loss is ";
  constexpr std::size_t kMostBytes = 40;
  if (error.detail == "E_NAN_LOSS") {
    const std::string& text = error.message;
    if (text.starts_with("the loss of the ")) { // of a whole epoch
      return text.find(" is nan") == std::string::npos ? "loss inf"
                                                       : "loss nan";
    }
    return text.starts_with(kLoss)
               ? "loss " + text.substr(
                               kLoss.size(),
                               text.find(' ', kLoss.size()) - kLoss.size())
               : "weights not finite";
  }
  return error.detail.empty()
             ? escape(split(error.message, '\n').front(), kMostBytes)
             : error.detail;
}

} // namespace lockstep::train
