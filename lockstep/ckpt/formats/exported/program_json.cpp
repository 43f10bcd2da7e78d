// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/program_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt::internal {
namespace {

struct SpecialReal {
  std::string_view text = {};
  double value = 0.0;
};

constexpr std::array kSpecialReals = {
    SpecialReal{"Infinity", std::numeric_limits<double>::infinity()},
    SpecialReal{"-Infinity", -std::numeric_limits<double>::infinity()},
    SpecialReal{"NaN", std::numeric_limits<double>::quiet_NaN()}};

template <class T>
bool parse_all(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, out);
  return problem == std::errc() && stop == end;
}

} // namespace

ProgramJson::ProgramJson(
    std::string_view text,
    std::string_view record,
    const Limits& limits)
    : json_(
          text,
          {.detail = "E_PROGRAM",
           .duplicate_detail = "E_PROGRAM",
           .what = record,
           .takes_python_numbers = true}),
      budget_(budget_of(limits, text.size())) {}

Status ProgramJson::text(std::string& out) {
  LOCKSTEP_ASSIGN(out, json_.string());
  return {};
}

Status ProgramJson::integer(std::int64_t& out) {
  LOCKSTEP_ASSIGN(const std::string_view digits, json_.number());
  return parse_all(digits, out)
             ? Status()
             : Status(error(format(
                   "expected a whole number of 64 bits, got {}",
                   escape(digits))));
}

Status ProgramJson::real(double& out) {
  // Torch before 2.8 writes infinities as Python's JSON does, newer as texts.
  std::string name;
  std::string_view digits;
  if (json_.starts_with('"')) {
    LOCKSTEP_ASSIGN(name, json_.string());
    digits = name;
  } else {
    LOCKSTEP_ASSIGN(digits, json_.number());
  }
  const auto* row =
      std::ranges::find(kSpecialReals, digits, &SpecialReal::text);
  if (row != kSpecialReals.end()) {
    out = row->value;
    return {};
  }
  return name.empty() && parse_all(digits, out)
             ? Status()
             : Status(error(
                   format("expected a number, got '{}'", escape(digits))));
}

Status ProgramJson::boolean(bool& out) {
  LOCKSTEP_ASSIGN(out, json_.boolean());
  return {};
}

Status ProgramJson::Level::status() const {
  return json_.depth_ <= kMaxProgramLevels
             ? Status()
             : Status(read_error(
                   ErrorCode::kUnsafe,
                   "E_DEPTH",
                   format(
                       "graphs or structures are nested more than {} levels "
                       "deep",
                       kMaxProgramLevels)));
}

Error ProgramJson::error(std::string_view message) {
  return json_.error(message);
}

} // namespace lockstep::ckpt::internal
