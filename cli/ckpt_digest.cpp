// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt digest FILE`: one number for the weights in it.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/digest.h"

namespace lockstep::cli {
namespace {

// Digits that people compare by eye.
constexpr std::size_t kShortDigits = 32;

struct DigestArgs {
  std::string file = {};
  bool lines = false;
};

Json digest_rows_json(const std::vector<ckpt::DigestRow>& rows) {
  Json array = Json::array();
  for (const ckpt::DigestRow& row : rows) {
    array.push(Json::object()
                   .set("name", row.name)
                   .set("type", row.type)
                   .set("shape", row.shape)
                   .set("sha256", row.sha256)
                   .set("bytes", row.bytes));
  }
  return array;
}

Json digest_json(const std::vector<ckpt::DigestRow>& rows, bool lines) {
  const std::string digest = ckpt::digest_text(rows);
  Json json = Json::object()
                  .set("digest", digest)
                  .set("short", digest.substr(0, kShortDigits))
                  .set("tensors", rows.size());
  if (lines) {
    json.set("lines", digest_rows_json(rows));
  }
  return json;
}

std::string digest_rows_text(const std::vector<ckpt::DigestRow>& rows) {
  std::string text;
  for (const ckpt::DigestRow& row : rows) {
    ckpt::DigestRow shown = row;
    shown.name = escape(row.name, row.name.size());
    text += ckpt::digest_line(shown);
  }
  return text;
}

Result<int> run_digest(const DigestArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  auto rows = ckpt::digest_rows(file.root, common.load.limits);
  if (!rows) {
    rows.error().path = input.name();
    return std::move(rows).error();
  }
  if (common.json) {
    print_result("lockstep.ckpt.digest/1", digest_json(*rows, args.lines));
  } else if (args.lines) {
    print(digest_rows_text(*rows));
  } else {
    print(ckpt::digest_text(*rows) + "\n");
  }
  return 0;
}

} // namespace

Runner setup_digest(CLI::App& app, const Common& common) {
  auto args = std::make_shared<DigestArgs>();
  add_file(app, args->file);
  app.add_flag(
      "--lines",
      args->lines,
      "print a line for each tensor: name, type, shape, SHA-256");
  return [args, &common] { return run_digest(*args, common); };
}

} // namespace lockstep::cli
