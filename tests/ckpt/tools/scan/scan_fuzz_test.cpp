// SPDX-License-Identifier: BSD-3-Clause
//
// Random pickles: every name that Python's unpicklers ask for is in the scan.
// A longer run, of a million (HACKING.md):
//   LOCKSTEP_FUZZ_PICKLES=1000000 build/core/tests/ckpt/ckpt_test
//     --gtest_filter=ScanFuzzOracle.*
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"
#include "tests/support/hex.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt {
namespace {

constexpr std::uint64_t kChunk = 10'000;

std::uint64_t pickles_to_try() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* const chosen = std::getenv("LOCKSTEP_FUZZ_PICKLES");
  return chosen == nullptr
             ? kChunk
             : parse_number<std::uint64_t>(chosen).value_or(kChunk);
}

// Reads what scan_fuzz.py wrote.
class Cases {
 public:
  explicit Cases(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const {
    return bytes_.empty();
  }
  std::uint32_t next_number() {
    const auto number =
        internal::read_le<std::uint32_t>(as_byte_span(bytes_), 0);
    bytes_.remove_prefix(sizeof number);
    return number;
  }
  std::string_view next_text() {
    const std::uint32_t size = next_number();
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view bytes_;
};

// A name that is put together, or comes from the registry of extensions, is
// seen as such.
bool has_name(const PickleScan& scan, std::string_view name) {
  return std::ranges::any_of(scan.names, [name](const PickleName& found) {
    const bool is_extension =
        found.name.starts_with("?extension") && name.starts_with("extmod.");
    return found.name == name || found.name == "?" || is_extension;
  });
}

// What no text starts with by chance.
bool is_plain(std::string_view name) {
  return std::ranges::all_of(
             name,
             [](char c) {
               return std::isalpha(static_cast<unsigned char>(c)) != 0 ||
                      c == '.' || c == '_';
             }) &&
         !name.ends_with('.');
}

struct Tally {
  std::uint64_t pickles = 0;
  std::uint64_t names = 0;
  std::uint64_t missed = 0;
};

void check(
    std::string_view pickle,
    const std::vector<std::string_view>& asked,
    Tally& tally) {
  const PickleScan scan = scan_pickle(as_byte_span(pickle));
  const ScanReport report =
      ckpt::scan(make_source(as_byte_span(pickle)), "random");
  ++tally.pickles;
  for (const std::string_view name : asked) {
    ++tally.names;
    if (!has_name(scan, name)) {
      ++tally.missed;
      ADD_FAILURE() << "not seen: " << escape(name) << "\n"
                    << test::hex(pickle);
    }
    const GlobalInfo info = find_global(name);
    const bool is_missed =
        (!info.is_harmless() && report.verdict == Verdict::kClean) ||
        (info.is_dangerous() && is_plain(name) &&
         report.verdict != Verdict::kFound);
    if (is_missed) {
      ++tally.missed;
      ADD_FAILURE() << verdict_name(report.verdict) << ": " << escape(name)
                    << "\n"
                    << test::hex(pickle);
    }
  }
}

void check_chunk(std::uint64_t seed, std::uint64_t count, Tally& tally) {
  const test::ScratchDir dir;
  const std::string path = dir / "cases.bin";
  test::run_python(
      "scan_fuzz.py",
      {std::to_string(seed), std::to_string(count), path});
  const std::string bytes = test::file_text(path);
  Cases cases(bytes);
  while (!cases.at_end()) {
    const std::string_view pickle = cases.next_text();
    std::vector<std::string_view> asked(cases.next_number());
    std::ranges::generate(asked, [&cases] { return cases.next_text(); });
    check(pickle, asked, tally);
  }
}

TEST(ScanFuzzOracle, SeesEveryNameThatPythonAsksFor) {
  const std::uint64_t count = pickles_to_try();
  Tally tally;
  for (std::uint64_t done = 0; done < count && tally.missed < 10;
       done += kChunk) {
    check_chunk(done / kChunk, std::min(kChunk, count - done), tally);
  }
  std::cout << format(
      "{} pickles, {} names asked for, {} missed\n",
      tally.pickles,
      tally.names,
      tally.missed);
  EXPECT_EQ(tally.pickles, count);
  EXPECT_GT(tally.names, count / 2) << "the pickles are not rich enough";
}

} // namespace
} // namespace lockstep::ckpt
