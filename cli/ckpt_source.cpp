// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt source FILE`: the Python sources that travel in a file.
#include <limits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/model.h"

namespace lockstep::cli {
namespace {

struct SourceArgs {
  std::string file = {};
  bool list = false;
  std::string name = {};
};

Json sources_json(const std::vector<ckpt::ClassSource>& sources, bool list) {
  const auto row_of = [list](const ckpt::ClassSource& source) {
    Json row = Json::object();
    row.set("name", source.name)
        .set("file", source.file)
        .set("bytes", std::uint64_t{source.text.size()});
    if (!list) {
      row.set("text", source.text);
    }
    return row;
  };
  return Json::object().set("sources", Json::array(sources, row_of));
}

// Everything but line feeds and tabs is made safe for a terminal.
std::string safe_text(const std::string& text) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) {
    std::vector<std::string> cells = split(line, '\t');
    for (std::string& cell : cells) {
      cell = escape(cell, kAll);
    }
    line = join(cells, "\t");
  }
  return join(lines, "\n");
}

std::string sources_text(
    const std::vector<ckpt::ClassSource>& sources,
    bool list) {
  std::string text;
  for (const ckpt::ClassSource& source : sources) {
    const std::string from =
        source.file.empty() ? "" : " from " + escape(source.file, 200);
    text += format(
        "{}{}{}, {}\n",
        list ? "" : "# ",
        escape(source.name, 200),
        from,
        source.text.empty() ? "no text" : human_bytes(source.text.size()));
    if (!list) {
      text += safe_text(source.text);
      text += source.text.ends_with('\n') || source.text.empty() ? "" : "\n";
    }
  }
  return text;
}

Result<int> run_source(const SourceArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  LOCKSTEP_ASSIGN(
      std::vector<ckpt::ClassSource> sources,
      ckpt::class_sources(file, input.source()));
  if (!args.name.empty()) {
    std::erase_if(sources, [&args](const ckpt::ClassSource& source) {
      return source.name != args.name;
    });
  }
  if (sources.empty()) {
    return Error{
        .code = ErrorCode::kNotFound,
        .op = "ckpt.source",
        .message = args.name.empty()
                       ? "this file contains no Python sources"
                       : format("no source named '{}'", escape(args.name)),
        .hint = args.name.empty() ? "PyTorch up to 1.5 put them into whole "
                                    "models, TorchScript always does"
                                  : "--list shows the names",
        .path = input.name(),
        .detail = "E_NO_SOURCE"};
  }
  if (common.json) {
    print_result("lockstep.ckpt.source/1", sources_json(sources, args.list));
  } else {
    print(sources_text(sources, args.list));
  }
  return 0;
}

} // namespace

Runner setup_source(CLI::App& app, const Common& common) {
  auto args = std::make_shared<SourceArgs>();
  add_file(app, args->file);
  app.add_flag("--list", args->list, "names and sizes only");
  app.add_option("--name", args->name, "only this class or record");
  return [args, &common] { return run_source(*args, common); };
}

} // namespace lockstep::cli
