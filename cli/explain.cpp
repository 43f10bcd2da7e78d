// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep explain CODE`: the long text of docs/errors.md, built in.
#include <algorithm>
#include <cctype>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/explain_text.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

struct ExplainArgs {
  std::string code = {};
};

struct Section {
  std::string name = {};
  std::string text = {};
};

// Cuts the documents at their "## NAME" headings.
std::vector<Section> sections() {
  constexpr std::string_view kHeading = "## ";
  std::vector<Section> result;
  for (const std::string& line : split(explain_text(), '\n')) {
    if (line.starts_with(kHeading)) {
      result.push_back({.name = line.substr(kHeading.size())});
    } else if (line.starts_with("# ")) {
      result.emplace_back(); // a title ends the section before it
    } else if (!result.empty()) {
      result.back().text += line + "\n";
    }
  }
  return result;
}

bool equal_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

Result<int> run_explain(const ExplainArgs& args, const Common& common) {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    names.push_back(section.name);
    if (section.name.empty() || !equal_letters(section.name, args.code)) {
      continue;
    }
    if (common.json) {
      print_result(
          "lockstep.explain/1",
          Json::object().set("code", section.name).set("text", section.text));
    } else {
      std::string text = section.name + "\n" + section.text;
      text.erase(text.find_last_not_of('\n') + 1);
      print(text + "\n");
    }
    return 0;
  }
  const std::string near = nearest(args.code, names);
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.explain",
      .message = format("unknown error code '{}'", escape(args.code)),
      .hint = near.empty() ? "docs/errors.md lists all codes"
                           : format("did you mean '{}'?", near)};
}

} // namespace

Runner setup_explain(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ExplainArgs>();
  app.add_option("CODE", args->code, "such as kCorrupt or E_CRC")->required();
  return [args, &common] { return run_explain(*args, common); };
}

} // namespace lockstep::cli
