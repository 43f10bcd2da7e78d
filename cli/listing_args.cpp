// SPDX-License-Identifier: BSD-3-Clause
#include "cli/listing_args.h"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/file_warnings.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::cli {
namespace {

using Order = ckpt::ListOrder;
constexpr std::array<std::pair<std::string_view, Order>, 4> kOrders{{
    {"file", Order::kFile},
    {"name", Order::kName},
    {"size", Order::kBytes},
    {"dtype", Order::kDType},
}};

// The parser let only these words pass.
Order order_of(const std::string& name) {
  const auto* row =
      std::ranges::find(kOrders, name, &decltype(kOrders)::value_type::first);
  return row->second;
}

} // namespace

void add_listing(CLI::App& app, ListArgs& args) {
  add_file(app, args.file);
  app.add_flag("-l,--long", args.is_long, "strides and bytes, too");
  std::vector<std::string> orders;
  orders.reserve(kOrders.size());
  for (const auto& [word, order] : kOrders) {
    orders.emplace_back(word);
  }
  app.add_option("--sort", args.sort, "order of the lines")
      ->check(CLI::IsMember(orders));
  app.add_option(
      "--filter",
      args.filter,
      "only names that match a regular expression");
  app.add_option("--depth", args.depth, "fold names to so many parts")
      ->check(check_not_negative);
}

Result<std::vector<ckpt::ListRow>> list_rows(
    const ckpt::Checkpoint& file,
    const ListArgs& args) {
  return ckpt::list_tensors(
      file.root,
      {.order = order_of(args.sort), .filter = args.filter});
}

void print_list(const ckpt::Checkpoint& file, std::string_view text) {
  print(text);
  print_warnings(warning_lines(file));
}

std::string storage_place(
    std::string_view format,
    const ckpt::Storage& storage) {
  if (storage.source == nullptr) {
    return "none";
  }
  const std::string_view label = ckpt::format_of(format).key_label;
  if (label.empty() || storage.key.empty()) {
    return "own";
  }
  // The oldest TorchScript archives name the record itself: "tensors/0".
  const bool is_record = storage.key.find('/') != std::string::npos;
  return std::string(is_record ? "" : label) + escape(storage.key, 20);
}

std::string storage_text(std::string_view format, const ckpt::Tensor& tensor) {
  std::string text = storage_place(format, *tensor.storage);
  if (tensor.offset != 0) {
    text += "+" + std::to_string(tensor.offset);
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

Json group_json(const ckpt::TreeRow& row) {
  return Json::object()
      .set("name", row.path)
      .set("tensors", row.tensors)
      .set("bytes", row.bytes);
}

} // namespace lockstep::cli
