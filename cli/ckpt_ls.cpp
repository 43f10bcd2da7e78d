// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt ls FILE`: the tensors in file order.
#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/value_walk.h"

namespace lockstep::cli {
namespace {

struct Args {
  std::string file = {};
};

struct Row {
  std::string name = {};
  ckpt::Tensor tensor = {};
};

Result<std::vector<Row>> collect(const ckpt::Checkpoint& file) {
  std::vector<Row> rows;
  LOCKSTEP_TRY(ckpt::for_each_tensor(
      file.root,
      [&rows](const std::string& name, const ckpt::Tensor& tensor) {
        rows.push_back({.name = name, .tensor = tensor});
      }));
  return rows;
}

Json rows_json(const std::vector<Row>& rows) {
  Json array = Json::array();
  for (const Row& row : rows) {
    Json json = ckpt::tensor_json(row.tensor);
    json.set("name", row.name);
    array.push(std::move(json));
  }
  return Json::object().set("tensors", std::move(array));
}

std::string storage_text(const ckpt::Tensor& tensor) {
  std::string text = format("data/{}", escape(tensor.storage->key, 20));
  if (tensor.offset != 0) {
    text += format("+{}", tensor.offset);
  }
  return text;
}

std::string flags_text(const ckpt::Tensor& tensor) {
  std::string text;
  text += tensor.is_contiguous() ? "" : " strided";
  text += tensor.requires_grad ? " grad" : "";
  text += tensor.is_conj ? " conj" : "";
  text += tensor.is_neg ? " neg" : "";
  return text;
}

std::string rows_text(const std::vector<Row>& rows) {
  std::size_t name_width = 0;
  std::size_t shape_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, escape(row.name, 200).size());
    shape_width = std::max(shape_width, ckpt::shape_text(row.tensor).size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string name = escape(row.name, 200);
    name.resize(std::max(name.size(), name_width), ' ');
    std::string shape = ckpt::shape_text(row.tensor);
    shape.resize(shape_width, ' ');
    text += format(
        "{}  {:<8}  {}  {:<9} {}{}\n",
        name,
        ckpt::dtype_info(row.tensor.dtype).name,
        shape,
        storage_text(row.tensor),
        escape(row.tensor.storage->location, 20),
        flags_text(row.tensor));
  }
  return text;
}

Result<int> run(const Args& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load());
  LOCKSTEP_ASSIGN(const std::vector<Row> rows, collect(file));
  if (common.json) {
    print_result("lockstep.ckpt.ls/1", rows_json(rows));
  } else {
    print(rows_text(rows));
  }
  return 0;
}

} // namespace

Runner setup_ls(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Args>();
  add_file(app, args->file);
  return [args, &common] { return run(*args, common); };
}

} // namespace lockstep::cli
