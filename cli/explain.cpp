// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep explain [CODE]`: the long text of docs/errors.md, built in.
#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/explain_text.h"
#include "cli/output.h"
#include "cli/usage_errors.h"
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

// The sections that have a name.
std::vector<Section> codes() {
  std::vector<Section> result = sections();
  std::erase_if(result, [](const Section& row) { return row.name.empty(); });
  return result;
}

// The first sentence, which may go on in the next line.
std::string first_sentence(const Section& section) {
  constexpr std::string_view kMeaning = "- Meaning: ";
  std::string text = section.text.substr(section.text.find_first_not_of('\n'));
  if (text.starts_with(kMeaning)) {
    return text.substr(kMeaning.size(), text.find('\n') - kMeaning.size());
  }
  text = text.substr(0, text.find("\n\n"));
  std::ranges::replace(text, '\n', ' ');
  text = text.substr(0, text.find(". "));
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

// As much of it as fits a line beside its code.
std::string short_line(const std::string& sentence) {
  constexpr std::size_t kWidth = 55;
  return sentence.size() <= kWidth
             ? sentence
             : sentence.substr(0, sentence.rfind(' ', kWidth - 4)) + " ...";
}

int list_codes(const Common& common) {
  Json rows = Json::array();
  std::string text;
  for (const Section& section : codes()) {
    const std::string line = first_sentence(section);
    text += format("{:<24} {}\n", section.name, short_line(line));
    rows.push(Json::object().set("code", section.name).set("text", line));
  }
  common.json ? print_result(
                    "lockstep.explain.list/1",
                    Json::object().set("codes", std::move(rows)))
              : print(text);
  return 0;
}

Result<int> run_explain(const ExplainArgs& args, const Common& common) {
  if (args.code.empty()) {
    return list_codes(common);
  }
  std::vector<std::string> names;
  for (const Section& section : codes()) {
    names.push_back(section.name);
    if (lower_case(section.name) != lower_case(args.code)) {
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
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.explain",
      .message = format("unknown error code '{}'", escape(args.code)),
      .hint = did_you_mean(args.code, names, "lockstep explain")};
}

} // namespace

Runner setup_explain(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ExplainArgs>();
  app.add_option(
      "CODE",
      args->code,
      "such as kCorrupt or E_CRC; none lists all");
  return [args, &common] { return run_explain(*args, common); };
}

} // namespace lockstep::cli
