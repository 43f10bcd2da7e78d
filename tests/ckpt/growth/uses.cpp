// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/growth/uses.h"

#include <algorithm>
#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::growth {
namespace {

using Tool = std::function<Status(const Checkpoint&)>;

// A use of what was loaded.
Use of_tree(std::string name, Tool tool) {
  return {
      std::move(name),
      [tool = std::move(tool)](const Subject& subject) -> Status {
        LOCKSTEP_ASSIGN(const Checkpoint file, subject.load());
        return tool(file);
      }};
}

template <class T>
Status status_of(Result<T> result) {
  return result ? Status() : Status(std::move(result).error());
}

Status saved(
    const Checkpoint& file,
    const std::string& format,
    std::uint64_t max_expanded_bytes) {
  MemoryFs fs;
  LOCKSTEP_ASSIGN(
      const Converted converted,
      convert_tensors(
          file.root,
          {.clone_views = format == "pt",
           .max_expanded_bytes = max_expanded_bytes}));
  return save(
      "out",
      converted.root,
      {.format = format,
       .clone_views = true,
       .max_expanded_bytes = max_expanded_bytes},
      fs);
}

// A file that was edited is written, too.
Status written(Result<Edited> edited) {
  LOCKSTEP_TRY(edited);
  EXPECT_FALSE(counts_text(edited->report).empty());
  MemoryFs fs;
  return save("out", edited->root, {}, fs);
}

// The first name that an edit can take.
std::vector<std::string> first_name(const Value& root) {
  const Dict* const dict = root.as_dict();
  return {
      dict == nullptr || dict->items.empty() ? "0"
                                             : key_text(dict->items[0].first)};
}

Status matched(const Checkpoint& file) {
  const WeightsPlace place = locate_weights(file.root);
  LOCKSTEP_ASSIGN(const auto shapes, shapes_of(place.value));
  // Not the same list, so that they are compared.
  std::vector<NamedShape> model = shapes;
  model.push_back({.name = "more"});
  LOCKSTEP_ASSIGN(const PositionMatch match, match_by_position(shapes, model));
  return written(rename_by_position(file.root, model, match));
}

Status averaged(const Checkpoint& file) {
  const std::array<NamedRoot, 2> files{
      NamedRoot{"a", file.root},
      NamedRoot{"b", file.root}};
  LOCKSTEP_ASSIGN(const Averaged mean, average(files));
  MemoryFs fs;
  return save("out", mean.root, {}, fs);
}

std::vector<Use> readers() {
  return {
      of_tree("load", [](const Checkpoint&) { return Status(); }),
      of_tree(
          "inspect",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const Summary summary, summarize(file));
            EXPECT_FALSE(to_text(summary, "f.pt").empty());
            return {};
          }),
      of_tree(
          "ls, tree",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const auto rows, list_tensors(file.root));
            EXPECT_LE(rows.empty() ? 0U : 1U, tree_rows(rows, 0).size());
            return {};
          }),
      of_tree(
          "show",
          [](const Checkpoint& file) -> Status {
            EXPECT_FALSE(to_text(file.root).empty());
            return {};
          }),
      of_tree(
          "show --json",
          [](const Checkpoint& file) -> Status {
            return status_of(to_json(file.root));
          }),
      of_tree("extract-model", [](const Checkpoint& file) -> Status {
        return status_of(extract_model(file));
      })};
}

std::vector<Use> edits() {
  return {
      of_tree(
          "pick",
          [](const Checkpoint& file) {
            return written(pick(file.root, first_name(file.root)));
          }),
      of_tree(
          "drop",
          [](const Checkpoint& file) {
            return written(drop(file.root, first_name(file.root)));
          }),
      of_tree(
          "strip",
          [](const Checkpoint& file) {
            return written(strip_prefix(
                file.root,
                {.prefix = first_name(file.root).front().substr(0, 1),
                 .partial = true}));
          }),
      of_tree(
          "prefix",
          [](const Checkpoint& file) {
            return written(add_prefix(file.root, {}));
          }),
      of_tree(
          "rename",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(
                const RenameRule rule,
                RenameRule::parse("s/^(.)/x\\1/"));
            return written(rename_keys(file.root, rule));
          }),
      of_tree(
          "merge",
          [](const Checkpoint& file) {
            return written(merge(file.root, file.root, {.replace = true}));
          }),
      of_tree(
          "namespaces",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const Value plain, plain_namespaces(file.root));
            MemoryFs fs;
            return save("out", plain, {}, fs);
          }),
      of_tree("match", matched),
      of_tree(
          "to itself",
          [](const Checkpoint& file) -> Status {
            MemoryFs fs;
            return writer_of(file) ? rewrite(file, file.root, "out", {}, fs)
                                   : Status();
          }),
      of_tree("optim", [](const Checkpoint& file) -> Status {
        LOCKSTEP_ASSIGN(const OptimState state, optim_to_cpp(file.root));
        MemoryFs fs;
        LOCKSTEP_TRY(save("out", state.root, {.format = "libtorch"}, fs));
        LOCKSTEP_ASSIGN(const Checkpoint back, load("out", {}, fs));
        return status_of(optim_to_python(back.root));
      })};
}

Error of_limit(std::string_view detail) {
  return {.detail = std::string(detail)};
}

Status verified(const Subject& subject) {
  const LoadOptions options{.use_mmap = false, .limits = subject.limits};
  LOCKSTEP_ASSIGN(
      const VerifyReport report,
      subject.source != nullptr ? verify(subject.source, subject.path, options)
                                : verify(subject.path, options, *subject.fs));
  return report.errors.empty() ? Status()
                               : Status(of_limit(report.errors[0].detail));
}

Status scanned(const Subject& subject) {
  std::vector<ScanReport> reports;
  if (subject.source != nullptr) {
    reports.push_back(scan(subject.source, subject.path, subject.limits));
  } else {
    LOCKSTEP_ASSIGN(
        reports,
        scan_path(subject.path, {.limits = subject.limits}, *subject.fs));
  }
  for (const ScanReport& report : reports) {
    if (std::ranges::find(report.notes, "E_LIMIT", &Error::detail) !=
        report.notes.end()) {
      return of_limit("E_LIMIT");
    }
  }
  return {};
}

} // namespace

Result<Checkpoint> Subject::load() const {
  const LoadOptions options{.use_mmap = false, .limits = limits};
  return source != nullptr ? ckpt::load(source, path, options)
                           : ckpt::load(path, options, *fs);
}

std::vector<Use> uses() {
  std::vector<Use> all = readers();
  // These take the limits, and the file's account with them.
  all.push_back({"digest", [](const Subject& subject) -> Status {
                   LOCKSTEP_ASSIGN(const Checkpoint file, subject.load());
                   return status_of(digest(file.root, subject.limits));
                 }});
  all.push_back({"diff", [](const Subject& subject) -> Status {
                   LOCKSTEP_ASSIGN(const Checkpoint file, subject.load());
                   return status_of(
                       diff(file.root, file.root, {.limits = subject.limits}));
                 }});
  all.push_back({"source", [](const Subject& subject) -> Status {
                   LOCKSTEP_ASSIGN(const Checkpoint file, subject.load());
                   return status_of(class_sources(file, subject.source));
                 }});
  std::ranges::move(edits(), std::back_inserter(all));
  for (const char* format :
       {"pt", "pt-legacy", "dcp", "safetensors", "npz", "libtorch"}) {
    all.push_back(
        {std::string("to ") + format,
         [format](const Subject& subject) -> Status {
           LOCKSTEP_ASSIGN(const Checkpoint file, subject.load());
           return saved(file, format, subject.limits.max_expanded_bytes);
         }});
  }
  // Views may repeat 64 MiB in any case, and are read twice.
  all.push_back(of_tree("average", averaged));
  all.back().free_bytes = 512 << 20;
  // A name that is not there is looked for among the first 50,000.
  all.push_back(of_tree("show NAME", [](const Checkpoint& file) -> Status {
    return status_of(find_path(file.root, "no.such.name"));
  }));
  all.back().free_bytes = 256 << 20;
  all.push_back({"verify", verified});
  all.push_back({.name = "scan", .run = scanned, .leaps = true});
  all.push_back(
      {.name = "repair",
       .run =
           [](const Subject& subject) {
             MemoryFs fs;
             return status_of(salvage(
                 subject.source,
                 "out",
                 {.limits = subject.limits},
                 {},
                 fs));
           },
       .takes_folders = false});
  return all;
}

} // namespace lockstep::ckpt::growth
