// SPDX-License-Identifier: BSD-3-Clause
//
// Work and memory are linear in the file: what is allocated and what is read
// grows with n, 2n, 4n by at most kMostGrowth for each doubling, or the file is
// refused (E_LIMIT). The table is printed. Nothing here looks at a clock.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "tests/ckpt/growth/hostile_files.h"
#include "tests/ckpt/growth/uses.h"

namespace {
std::uint64_t allocated_bytes = 0;
std::uint64_t allocations = 0;
} // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
void* operator new(std::size_t size) {
  allocated_bytes += size;
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)

namespace lockstep::ckpt::growth {
namespace {

// Per doubling: of what is counted, and of what is allocated, with room for
// vectors that grow by leaps.
constexpr double kMostGrowth = 2.2;
constexpr double kMostAllocated = 2.6;
// What a small file takes in any case.
constexpr double kFreeBytes = 1 << 20;
constexpr double kFreeSteps = 1 << 12;

Limits small_limits() {
  Limits limits;
  limits.max_made_bytes = 1 << 14;
  limits.max_expanded_bytes = 1 << 14;
  limits.max_steps = 1 << 12;
  return limits;
}

// What one use of a file counts.
struct Counts {
  double bytes = 0;
  double allocations = 0;
  double read = 0;
  double made = 0;
  double steps = 0;
  std::string error = {};
};

Counts count(const Use& use, const Files& files, const std::string& path) {
  Subject subject{.path = path, .limits = small_limits()};
  subject.limits.budget = std::make_shared<Budget>(subject.limits);
  if (files.size() == 1 && path == files.begin()->first) {
    subject.source = std::make_shared<CountedSource>(files.begin()->second);
    subject.limits.budget->add_file(files.begin()->second.size());
  } else {
    subject.fs = std::make_shared<MemoryFs>();
    EXPECT_TRUE(subject.fs->create_directories("d"));
    for (const auto& [name, bytes] : files) {
      auto file = subject.fs->create("d/" + name, 0644);
      EXPECT_TRUE(file && (*file)->write(as_byte_span(bytes)));
    }
    subject.path = path.empty() ? "d" : "d/" + path;
    const auto opened = files.find(path);
    subject.limits.budget->add_file(
        opened == files.end() ? 0 : opened->second.size());
  }
  const std::uint64_t bytes_before = allocated_bytes;
  const std::uint64_t allocations_before = allocations;
  const Status status = use.run(subject);
  const Budget& budget = *subject.limits.budget;
  return {
      .bytes = static_cast<double>(allocated_bytes - bytes_before),
      .allocations = static_cast<double>(allocations - allocations_before),
      .read =
          static_cast<double>(subject.source ? subject.source->bytes_read : 0),
      .made = static_cast<double>(budget.made()),
      .steps = static_cast<double>(budget.steps()),
      .error = status ? "" : status.error().detail};
}

// By how much a counter grows when the file doubles.
double growth(double small, double large, double free) {
  return large <= free ? 1 : large / std::max(small, free / kMostGrowth);
}

// The largest growth of what is counted, and of what is allocated.
struct Growths {
  double counted = 0;
  double allocated = 0;

  void add(const Counts& small, const Counts& large, const Use& use) {
    counted = std::max(
        {counted,
         growth(small.made, large.made, kFreeBytes),
         growth(small.steps, large.steps, kFreeSteps),
         growth(small.read, large.read, use.free_bytes)});
    allocated = std::max(
        {allocated,
         growth(small.bytes, large.bytes, use.free_bytes),
         growth(small.allocations, large.allocations, use.free_bytes / 1024)});
  }
};

struct Hostile {
  std::string name = {};
  std::string path = {};
  std::function<Files(std::size_t)> make = {};
};

class Growth : public testing::TestWithParam<Hostile> {};

TEST_P(Growth, IsLinearInTheFileOrRefused) {
  constexpr std::size_t kBytes = 12'000;
  const std::array<Files, 3> files{
      GetParam().make(kBytes),
      GetParam().make(2 * kBytes),
      GetParam().make(4 * kBytes)};
  double size = 0;
  for (const auto& [name, bytes] : files.back()) {
    size += static_cast<double>(bytes.size());
  }
  for (const Use& use : uses()) {
    const bool is_folder = GetParam().path != files[0].begin()->first;
    if (is_folder && !use.takes_folders) {
      continue;
    }
    // What grows by leaps is compared over both doublings together.
    const std::size_t doublings = use.leaps ? 2 : 1;
    Growths grown;
    Counts last;
    for (std::size_t i = 0; i < files.size(); i += doublings) {
      const Counts counts = count(use, files.at(i), GetParam().path);
      if (i != 0) {
        grown.add(last, counts, use);
      }
      last = counts;
    }
    const bool is_refused = last.error == "E_LIMIT";
    std::printf(
        "%-25s %-13s %7.0f bytes: read %4.1f x, made %5.1f x, %5.1f steps each "
        "byte; allocated %5.0f x in %7.0f; growth %4.2f, %4.2f %s\n",
        GetParam().name.c_str(),
        use.name.c_str(),
        size,
        last.read / size,
        last.made / size,
        last.steps / size,
        last.bytes / size,
        last.allocations,
        is_refused ? 0 : grown.counted,
        is_refused ? 0 : grown.allocated,
        last.error.c_str());
    const double most =
        std::pow(use.leaps ? kMostAllocated : kMostGrowth, doublings);
    EXPECT_TRUE(is_refused || grown.counted <= most)
        << GetParam().name << ", " << use.name << " " << grown.counted;
    const double most_allocated = std::pow(kMostAllocated, doublings);
    EXPECT_TRUE(is_refused || grown.allocated <= most_allocated)
        << GetParam().name << ", " << use.name << " " << grown.allocated;
  }
}

// Those of testdata/valid and of `LOCKSTEP_REAL_FILES`, a folder.
TEST(SoundFiles, MakeFarLessThanIsAllowed) {
  std::vector<std::filesystem::path> paths;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* const given = std::getenv("LOCKSTEP_REAL_FILES");
  for (const char* folder : {"testdata/valid", given}) {
    if (folder != nullptr) {
      std::ranges::copy(
          std::filesystem::directory_iterator(folder),
          std::back_inserter(paths));
    }
  }
  double most = 0;
  std::string worst;
  LoadOptions bare; // little is free
  bare.limits.max_made_bytes = 1 << 14;
  bare.limits.max_steps = 1 << 10;
  for (const auto& path : paths) {
    const auto usual = load(path.string());
    if (!usual) {
      continue;
    }
    EXPECT_LE(usual->budget->used(), 0.1) << path;
    const auto file = load(path.string(), bare);
    ASSERT_TRUE(file) << path << to_string(file.error());
    const Budget& budget = *file->budget;
    if (budget.used() > most) {
      most = budget.used();
      worst = format(
          "{}, of {} bytes: {} made, {} read, {} steps",
          path.filename().string(),
          budget.file_bytes(),
          budget.made(),
          budget.bytes_read(),
          budget.steps());
    }
  }
  std::printf(
      "most: %.4f of what 16 KiB and its bytes allow (%s)\n",
      most,
      worst.c_str());
}

std::string test_name(const testing::TestParamInfo<Hostile>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

std::vector<Hostile> all_hostile() {
  std::vector<Hostile> all;
  for (const auto& group :
       {hostile_calls(),
        hostile_programs(),
        hostile_values(),
        hostile_archives(),
        hostile_crowds(),
        hostile_shared()}) {
    for (const HostileFile& file : group) {
      all.push_back({file.name, "f.pt", [make = file.make](std::size_t n) {
                       return Files{{"f.pt", make(n)}};
                     }});
    }
  }
  for (const HostileFolder& folder : hostile_folders()) {
    all.push_back({folder.name, folder.path, folder.make});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Growth,
    testing::ValuesIn(all_hostile()),
    test_name);

} // namespace
} // namespace lockstep::ckpt::growth
