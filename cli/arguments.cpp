// SPDX-License-Identifier: BSD-3-Clause
#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/usage_errors.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

struct Unit {
  std::string_view name = {};
  std::uint64_t bytes = 0;
};
constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30}};

} // namespace

void add_file(CLI::App& app, std::string& file) {
  app.add_option("FILE", file, "checkpoint; - is standard input")->required();
}

void add_output(CLI::App& app, std::string& path, const std::string& help) {
  app.add_option("OUT,-o,--output", path, help)->required();
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
  if (text.empty()) {
    return std::uint64_t{0};
  }
  std::uint64_t count = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const auto* found = std::ranges::find(kUnits, unit, &Unit::name);
  std::uint64_t bytes = 0;
  if (error != std::errc() || found == kUnits.end() || count == 0 ||
      __builtin_mul_overflow(count, found->bytes, &bytes)) {
    return usage_error(
        format("'{}' is not a size", escape(text)),
        "write it like 5GB or 512MiB");
  }
  return bytes;
}

std::string check_not_negative(const std::string& text) {
  const auto number = parse_number<double>(text);
  return !number || (*number >= 0 && std::isfinite(*number))
             ? ""
             : format("expected a number from 0 on, got '{}'", escape(text));
}

} // namespace lockstep::cli
