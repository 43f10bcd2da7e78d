// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/json_model.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kModelDetail = "E_MODEL_JSON";

class ModelParser {
 public:
  ModelParser(std::string_view text, const Limits& limits)
      : json_(
            text,
            {.detail = kModelDetail,
             .duplicate_detail = kModelDetail,
             .what = "model.json"}),
        limits_(limits) {}

  Result<JsonModel> run() {
    JsonModel model;
    bool has_main = false;
    LOCKSTEP_TRY(object({
        {"mainModule",
         [&] {
           has_main = true;
           return module(model.main, 1);
         }},
        {"tensors",
         [&] {
           return json_.elements(
               [&] { return tensor(model.tensors.emplace_back()); });
         }},
    }));
    LOCKSTEP_TRY(json_.end());
    if (!has_main) {
      return json_.error("there is no 'mainModule'");
    }
    return model;
  }

 private:
  // What is not set may be written as null.
  Status object(std::initializer_list<JsonScanner::Field> fields) {
    // The text bounds what it expands to, but not by much.
    if (++objects_ > limits_.max_nodes) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("model.json has more than {} objects", limits_.max_nodes),
          "Limits::max_nodes allows more");
    }
    return json_.fields(fields);
  }

  Status module(JsonModule& out, std::uint64_t depth) {
    const std::uint64_t most = std::min(limits_.max_depth, kMaxModuleLevels);
    if (depth > most) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("modules nest deeper than {} levels", most));
    }
    return object({
        {"name", [&] { return string(out.name); }},
        {"parameters", [&] { return members(out.parameters, "tensorId"); }},
        {"attributes", [&] { return members(out.attributes, "id"); }},
        {"submodules",
         [&] {
           return json_.elements([&] {
             return module(out.submodules.emplace_back(), depth + 1);
           });
         }},
    });
  }

  Status members(std::vector<JsonMember>& out, std::string_view id) {
    return json_.elements([&] {
      JsonMember& member = out.emplace_back();
      return object({
          {"name", [&] { return string(member.name); }},
          {id, [&] { return integer(member.id); }},
      });
    });
  }

  Status tensor(JsonTensor& out) {
    return object({
        {"dataType", [&] { return string(out.type); }},
        {"dims", [&] { return integers(out.sizes); }},
        {"strides", [&] { return integers(out.strides); }},
        {"offset", [&] { return integer(out.offset); }},
        {"requiresGrad", [&] { return flag(out.requires_grad); }},
        {"device", [&] { return string(out.device); }},
        {"data",
         [&] {
           return object({{"key", [&] { return string(out.key); }}});
         }},
    });
  }

  Status string(std::string& out) {
    LOCKSTEP_ASSIGN(out, json_.string());
    return {};
  }

  Status flag(bool& out) {
    LOCKSTEP_ASSIGN(out, json_.boolean());
    return {};
  }

  Status integer(std::int64_t& out) {
    const std::uint64_t at = json_.offset();
    bool is_good = false;
    if (json_.starts_with('"')) {
      LOCKSTEP_ASSIGN(const std::string text, json_.string());
      const auto number = parse_number<std::int64_t>(text);
      is_good = number.has_value();
      out = number.value_or(0);
    } else {
      LOCKSTEP_ASSIGN(const std::uint64_t number, json_.unsigned_integer());
      out = static_cast<std::int64_t>(number);
      is_good = out >= 0;
    }
    if (is_good) {
      return {};
    }
    Error wrong = json_.error("expected an integer");
    wrong.offset = at;
    return wrong;
  }

  Status integers(std::vector<std::int64_t>& out) {
    return json_.elements([&] {
      return out.size() == kMaxDimensions
                 ? Status(json_.error("a tensor has too many dimensions"))
                 : integer(out.emplace_back());
    });
  }

  JsonScanner json_;
  Limits limits_;
  std::uint64_t objects_ = 0;
};

} // namespace

Result<JsonModel> parse_json_model(
    std::string_view text,
    const Limits& limits) {
  const std::size_t good = utf8_prefix(text);
  if (good != text.size()) {
    return corrupt_file(kModelDetail, "model.json: invalid UTF-8", {}, good);
  }
  return ModelParser(text, limits).run();
}

} // namespace lockstep::ckpt::internal
