// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep run [OPTIONS] PROGRAM [ARGS]`: starts ranks with torchrun's flags.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/usage_errors.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/internal/launcher.h"
#include "lockstep/launch/internal/master.h"

namespace lockstep::cli {
namespace {

struct RunArgs {
  std::string nodes = "1";
  std::string local_size = "1";
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  // Whether they were given.
  const CLI::Option* master_addr_flag = nullptr;
  const CLI::Option* master_port_flag = nullptr;
  std::string backend = "static";
  std::string endpoint = {};
  std::string run_id = "none";
  bool is_standalone = false;
  int max_restarts = 0;
  double shutdown_timeout = 30;
  std::string role = "default";
  bool is_module = false;
  bool no_python = false;
  std::string log_dir = {};
  std::string redirects = "0";
  std::string tee = "0";
  std::vector<int> shown_ranks = {};
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  bool is_virtual_local_rank = false;
  // torchrun's flags that mean nothing here.
  std::vector<std::string> unused = {};
};

/// What torchrun takes and this starter does not need.
struct UnusedFlag {
  const char* name = nullptr;
  const char* reason = nullptr;
};

constexpr std::array kUnusedFlags{
    UnusedFlag{"--rdzv-conf", "there is no rendezvous to configure"},
    UnusedFlag{"--monitor-interval", "the kernel reports when a rank ends"},
    UnusedFlag{"--start-method", "ranks are programs, started by exec"},
    UnusedFlag{"--event-log-handler", "it is a Python plug-in"},
    UnusedFlag{"--logs-specs", "it is a Python plug-in"},
    UnusedFlag{"--local-addr", "no rank connects to the launcher"},
    UnusedFlag{"--duplicate-stdout-filters", "--tee shows all lines"},
    UnusedFlag{"--duplicate-stderr-filters", "--tee shows all lines"},
    UnusedFlag{"--numa-binding", "start PROGRAM with numactl instead"},
};

constexpr int kMostRestarts = 1'000'000;

// CLI::Range lets "nan" pass.
std::string check_seconds(const std::string& text) {
  constexpr double kLongest = 1e6;
  const auto seconds = parse_number<double>(text);
  return seconds && *seconds >= 0 && *seconds <= kLongest
             ? ""
             : format("expected 0 to {} seconds, got '{}'", kLongest, text);
}

class RunLog final : public LogSink {
 public:
  explicit RunLog(launch::Console& console) : console_(console) {}
  void write(LogLevel /*level*/, std::string_view message) override {
    std::string text;
    for (const std::string& line : split(message, '\n')) {
      if (!line.empty()) {
        text += format("lockstep run: {}\n", line);
      }
    }
    console_.write(text);
  }

 private:
  launch::Console& console_;
};

bool is_python_file(const std::string& word) {
  return word.ends_with(".py");
}

// PROGRAM, started by Python if it is a script or a module.
std::vector<std::string> program_of(
    const RunArgs& args,
    std::vector<std::string> words) {
  if (!args.is_module && (args.no_python || !is_python_file(words.front()))) {
    return words;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  const char* python = std::getenv("PYTHON_EXEC");
  std::vector<std::string> program{
      python == nullptr ? "python3" : python,
      "-u"};
  if (args.is_module) {
    program.emplace_back("-m");
  }
  std::ranges::move(words, std::back_inserter(program));
  return program;
}

Result<int> parse_nodes(const RunArgs& args) {
  const std::string torchrun = format(
      "torchrun is for machines that come and go: torchrun --nnodes {} "
      "--rdzv-backend c10d --rdzv-endpoint HOST --no-python PROGRAM",
      escape(args.nodes));
  const auto bounds = split(args.nodes, ':');
  if (bounds.size() > 2 || bounds.front() != bounds.back()) {
    return usage_error("--nnodes MIN:MAX is not supported", torchrun);
  }
  const auto nodes = parse_number<int>(bounds.front(), 1);
  if (!nodes) {
    return usage_error(
        format("--nnodes: expected a number, got '{}'", escape(args.nodes)),
        "how many machines take part, each with --nproc-per-node ranks");
  }
  if (args.backend != "static" && (*nodes > 1 || args.backend != "c10d")) {
    return usage_error(
        format("--rdzv-backend {} is not supported", escape(args.backend)),
        torchrun);
  }
  if (args.node_rank < 0 || args.node_rank >= *nodes) {
    return usage_error(
        format(
            "--node-rank: expected 0 to {}, got {}",
            *nodes - 1,
            args.node_rank),
        "each machine has its own; the first is 0");
  }
  return *nodes;
}

std::string random_id() {
  constexpr std::uint64_t kIds = 1'000'000'000;
  return std::to_string(std::random_device()() % kIds);
}

// `notes`: what the user should know.
Result<launch::LaunchOptions> options_of(
    const RunArgs& args,
    const std::vector<std::string>& words,
    std::vector<std::string>& notes) {
  launch::LaunchOptions options{
      .program = program_of(args, words),
      .node_rank = args.node_rank,
      .run_id = args.run_id,
      .role = args.role,
      .max_restarts = args.max_restarts,
      .shutdown_timeout = std::chrono::milliseconds(
          static_cast<std::int64_t>(args.shutdown_timeout * 1000)),
      .log_dir = args.log_dir,
      .shown_ranks = args.shown_ranks,
      .is_virtual_local_rank = args.is_virtual_local_rank};
  LOCKSTEP_ASSIGN(options.nodes, parse_nodes(args));
  LOCKSTEP_ASSIGN(
      options.local_size,
      launch::parse_local_size(args.local_size));
  LOCKSTEP_ASSIGN(
      launch::Master master,
      launch::choose_master(
          {.addr = args.master_addr_flag->count() == 0 ? "" : args.master_addr,
           .port = args.master_port_flag->count() == 0
                       ? std::nullopt
                       : std::optional(args.master_port),
           .endpoint = args.endpoint,
           .is_standalone = args.is_standalone,
           .nodes = options.nodes}));
  options.master_addr = std::move(master.addr);
  options.master_port = master.port;
  notes = std::move(master.notes);
  LOCKSTEP_ASSIGN(
      options.places,
      launch::parse_places(args.redirects, args.tee, options.local_size));
  for (const int rank : args.shown_ranks) {
    if (rank < 0 || rank >= options.local_size) {
      return usage_error(
          format("--local-ranks-filter: there is no rank {} here", rank),
          format("local ranks are 0 to {}", options.local_size - 1));
    }
  }
  if (args.is_virtual_local_rank) {
    LOCKSTEP_TRY(launch::check_own_devices(options.local_size));
  }
  LOCKSTEP_ASSIGN(options.signals, launch::parse_signals(args.signals));
  if (options.nodes == 1 && options.run_id == "none") {
    options.run_id = random_id();
  }
  return options;
}

// What is left on the command line: PROGRAM and its arguments.
Result<std::vector<std::string>> program_words(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && is_flag(words.front())) {
    return usage_error(
        format("unknown flag '{}'", escape(words.front())),
        "run 'lockstep run --help'; flags of the program follow it");
  }
  if (words.empty()) {
    return usage_error(
        "PROGRAM is missing (what each rank runs)",
        "run 'lockstep run --help'");
  }
  return words;
}

Result<int> run_run(const RunArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const auto words, program_words(common.program));
  std::vector<std::string> notes;
  LOCKSTEP_ASSIGN(const auto options, options_of(args, words, notes));
  launch::Consoles consoles;
  RunLog log(consoles.err);
  for (const std::string& note : notes) {
    log.write(LogLevel::kWarning, note);
  }
  for (std::size_t i = 0; i < kUnusedFlags.size(); ++i) {
    if (!args.unused[i].empty()) {
      log.write(
          LogLevel::kWarning,
          format(
              "{} has no effect: {}",
              kUnusedFlags[i].name,
              kUnusedFlags[i].reason));
    }
  }
  return launch::launch(options, consoles, log);
}

// The variable that stands for a flag: PET_NPROC_PER_NODE.
std::string variable_of(const std::string& flag) {
  std::string name = "PET_" + flag.substr(2);
  std::ranges::replace(name, '-', '_');
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return name;
}

void add_job_flags(CLI::App& app, RunArgs& args) {
  app.add_option(
      "--nproc-per-node",
      args.local_size,
      "ranks on this machine: a number, auto, cpu or gpu");
  app.add_option("--nnodes", args.nodes, "machines, each with as many ranks");
  app.add_option(
      "--node-rank",
      args.node_rank,
      "which machine this is, from 0");
  args.master_addr_flag = app.add_option(
      "--master-addr",
      args.master_addr,
      "address of the first machine");
  args.master_port_flag = app.add_option(
      "--master-port",
      args.master_port,
      "port there, where rank 0 listens; without it a free one, or 29500 for "
      "several machines");
  app.add_option("--rdzv-backend", args.backend, "static; c10d on one machine");
  app.add_option(
      "--rdzv-endpoint",
      args.endpoint,
      "HOST:PORT, instead of --master-addr and --master-port");
  app.add_option("--rdzv-id", args.run_id, "name of the job");
  app.add_flag(
      "--standalone",
      args.is_standalone,
      "one machine and a free port");
  app.add_option(
         "--max-restarts",
         args.max_restarts,
         "how often all ranks start again after a failure")
      ->check(CLI::Range(0, kMostRestarts));
  app.add_option(
         "--shutdown-timeout",
         args.shutdown_timeout,
         "seconds between SIGTERM and SIGKILL")
      ->check(check_seconds)
      ->envname("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  app.add_option(
      "--signals-to-handle",
      args.signals,
      "signals that are passed on to the ranks");
  app.add_flag(
      "--virtual-local-rank",
      args.is_virtual_local_rank,
      "each rank sees one GPU, as number 0");
}

void add_program_flags(CLI::App& app, RunArgs& args) {
  app.add_flag("-m,--module", args.is_module, "PROGRAM is a Python module");
  app.add_flag(
      "--no-python",
      args.no_python,
      "start PROGRAM itself, also if it is called *.py");
  app.add_option(
      "--log-dir",
      args.log_dir,
      "folder for logs and error files; without it one for temporary files");
  app.add_option(
      "-r,--redirects",
      args.redirects,
      "to files: 0 nothing, 1 standard output, 2 standard error, 3 both; or "
      "0:3,1:2 by rank");
  app.add_option(
      "-t,--tee",
      args.tee,
      "to files and, with the rank in front, to the console; as --redirects");
  app.add_option(
         "--local-ranks-filter",
         args.shown_ranks,
         "ranks that the console shows: 0,2")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--role", args.role, "stands in front of the rank: [role0]:");
  args.unused.resize(kUnusedFlags.size());
  for (std::size_t i = 0; i < kUnusedFlags.size(); ++i) {
    app.add_option(
           kUnusedFlags[i].name,
           args.unused[i],
           "of torchrun; no effect here")
        ->group(kHiddenGroup);
  }
}

} // namespace

Runner setup_run(CLI::App& app, const Common& common) {
  auto args = std::make_shared<RunArgs>();
  app.prefix_command();
  add_job_flags(app, *args);
  add_program_flags(app, *args);
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty() && option->get_envname().empty()) {
      option->envname(variable_of("--" + option->get_lnames().front()));
    }
  }
  return [args, &common] { return run_run(*args, common); };
}

} // namespace lockstep::cli
