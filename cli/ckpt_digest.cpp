// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt digest PATH...`: one number for the weights in a file.
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/file_list.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

// Digits that people compare by eye.
constexpr std::size_t kShortDigits = 32;

struct DigestArgs {
  std::vector<std::string> paths = {};
  bool lines = false;
  bool weights = false;
};

// What is printed of a file.
struct Digested {
  std::vector<ckpt::DigestRow> rows = {};
  std::vector<std::string> warnings = {};
};

Json digest_row_json(const ckpt::DigestRow& row) {
  return Json::object()
      .set("name", row.name)
      .set("type", row.type)
      .set("shape", row.shape)
      .set("sha256", row.sha256)
      .set("bytes", row.bytes);
}

Json digest_json(const Digested& file, bool lines) {
  const auto& rows = file.rows;
  const std::string digest = ckpt::digest_text(rows);
  Json json = Json::object()
                  .set("digest", digest)
                  .set("short", digest.substr(0, kShortDigits))
                  .set("tensors", rows.size());
  if (lines) {
    json.set("lines", Json::array(rows, digest_row_json));
  }
  return with_warnings(std::move(json), file.warnings);
}

std::string digest_rows_text(const std::vector<ckpt::DigestRow>& rows) {
  std::string text;
  for (const ckpt::DigestRow& row : rows) {
    const std::string line = ckpt::digest_line(row);
    const std::size_t name_end = line.find('\t');
    text += escape(line.substr(0, name_end), std::string::npos) +
            line.substr(name_end);
  }
  return text;
}

// `front`: what warnings begin with.
Result<Digested> digest_file(
    const std::string& path,
    std::string_view front,
    const DigestArgs& args,
    const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(path));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  const ckpt::Value root =
      args.weights ? ckpt::locate_weights(file.root).value : file.root;
  LOCKSTEP_ASSIGN(
      auto rows,
      ckpt::in_file(
          ckpt::digest_rows(root, ckpt::counting(common.load.limits, file)),
          input.name()));
  std::vector<std::string> warnings = warning_lines(file, front);
  LOCKSTEP_ASSIGN(const auto beside, ckpt::tensors_beside_state(root));
  if (!beside.empty()) {
    warnings.push_back(format(
        "{}{} of modules do not count, since no state_dict has them: {}",
        front.empty() ? "" : escape(front, 200) + ": ",
        counted(beside.size(), "tensor"),
        some_names(beside)));
  }
  return Digested{.rows = std::move(rows), .warnings = std::move(warnings)};
}

Result<int> digest_one(
    const std::string& path,
    const DigestArgs& args,
    const Common& common) {
  LOCKSTEP_ASSIGN(const Digested file, digest_file(path, "", args, common));
  if (common.json) {
    print_result("lockstep.ckpt.digest/1", digest_json(file, args.lines));
    return 0;
  }
  print(
      args.lines ? digest_rows_text(file.rows)
                 : ckpt::digest_text(file.rows) + "\n");
  print_warnings(file.warnings);
  return 0;
}

// As sha256sum prints: the digest, then the path.
Result<int> run_digest(const DigestArgs& args, Common common) {
  common.load.beside = ckpt::make_folder_facts();
  LOCKSTEP_ASSIGN(const FileList list, list_files(args.paths));
  if (!list.is_several) {
    return digest_one(list.files[0], args, common);
  }
  FileAnswers answers("ckpt.digest", "readable");
  for (const std::string& path : list.files) {
    const auto file = caught("ckpt.digest", [&] {
      return digest_file(path, path, args, common);
    });
    answers.add(
        path,
        file ? digest_json(*file, args.lines) : Json(),
        file ? std::nullopt : std::optional(file.error()));
    if (common.json) {
      continue;
    }
    if (!file) {
      print_error(file.error(), "", false);
      continue;
    }
    print(format("{}  {}\n", ckpt::digest_text(file->rows), escape(path, 200)));
    print(args.lines ? digest_rows_text(file->rows) : "");
    print_warnings(file->warnings);
  }
  return answers.finish("lockstep.ckpt.digest.files/1", common.json);
}

} // namespace

Runner setup_digest(CLI::App& app, const Common& common) {
  auto args = std::make_shared<DigestArgs>();
  add_paths(app, args->paths);
  app.add_flag(
      "--lines",
      args->lines,
      "print a line for each tensor: name, type, shape, SHA-256");
  app.add_flag(
      "--weights",
      args->weights,
      "of the model's weights alone, wherever they are in the file");
  return [args, &common] { return run_digest(*args, common); };
}

} // namespace lockstep::cli
