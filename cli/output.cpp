// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "cli/flag_words.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/program_text.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

void write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

} // namespace

void print(std::string_view text) {
  write(stdout, text);
}

void print_warning(std::string_view text) {
  write(stderr, format("warning: {}\n", text));
}

bool is_cut_off() {
  return std::ferror(stdout) != 0;
}

void print_result(std::string_view schema, Json result) {
  print(answer_json(schema, std::move(result)).dump() + "\n");
}

Json element_json(std::string_view text) {
  if (text == "True" || text == "False") {
    return text == "True";
  }
  if (const auto number = parse_number<std::int64_t>(text)) {
    return *number;
  }
  if (const auto number = parse_number<std::uint64_t>(text)) {
    return *number;
  }
  if (const auto number = parse_number<double>(text);
      number && std::isfinite(*number)) {
    return *number;
  }
  return text;
}

int print_error(
    const Error& of_library,
    std::string_view schema,
    bool json,
    std::optional<Json> result) {
  Error error = of_library;
  error.hint = in_flags(std::move(error.hint));
  if (json) {
    Json object = answer_json(schema, error);
    if (result) {
      object.set("result", *std::move(result));
    }
    print(object.dump() + "\n");
  }
  write(stderr, to_program_text(error) + "\n");
  return error_info(error.code).exit_code;
}

} // namespace lockstep::cli
