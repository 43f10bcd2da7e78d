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
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/internal/memory_fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/counted_source.h"
#include "tests/ckpt/growth/hostile_files.h"

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

// Per doubling, with room for a logarithm and for vectors and windows that grow
// by leaps.
constexpr double kMostGrowth = 2.6;
// What a small file takes in any case.
constexpr double kFreeBytes = 1 << 20;
constexpr double kFreeAllocations = 1 << 10;

Limits small_limits() {
  Limits limits;
  limits.max_made_bytes = 1 << 14;
  limits.max_expanded_bytes = 1 << 14;
  return limits;
}

// What one use of a file counts.
struct Counts {
  double bytes = 0;
  double allocations = 0;
  double read = 0;
  std::string error = {};
};

/// A command, without its output.
struct Use {
  std::string name = {};
  std::function<Status(const std::shared_ptr<ByteSource>&)> run = {};
};

Result<Checkpoint> opened(const std::shared_ptr<ByteSource>& source) {
  return load(source, "f.pt", {.limits = small_limits()});
}

// A use of what was loaded.
Use of_tree(std::string name, std::function<Status(const Checkpoint&)> use) {
  return {
      std::move(name),
      [use = std::move(use)](
          const std::shared_ptr<ByteSource>& source) -> Status {
        LOCKSTEP_ASSIGN(const Checkpoint file, opened(source));
        return use(file);
      }};
}

template <class T>
Status status_of(Result<T> result) {
  return result ? Status() : Status(std::move(result).error());
}

Status saved(const Checkpoint& file, const std::string& format) {
  MemoryFs fs;
  LOCKSTEP_ASSIGN(
      const Converted converted,
      convert_tensors(
          file.root,
          {.clone_views = format == "pt",
           .max_expanded_bytes = small_limits().max_expanded_bytes}));
  return save(
      "out",
      converted.root,
      {.format = format,
       .clone_views = true,
       .max_expanded_bytes = small_limits().max_expanded_bytes},
      fs);
}

std::vector<Use> uses() {
  std::vector<Use> all{
      of_tree("load", [](const Checkpoint&) { return Status(); }),
      of_tree(
          "summary",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const Summary summary, summarize(file));
            EXPECT_FALSE(to_text(summary, "f.pt").empty());
            return {};
          }),
      of_tree(
          "ls, tree",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const auto rows, list_tensors(file.root));
            EXPECT_LE(rows.empty() ? 0U : 1U, tree_rows(rows, 0).size());
            return {};
          }),
      of_tree(
          "show",
          [](const Checkpoint& file) -> Status {
            EXPECT_FALSE(to_text(file.root).empty());
            return {};
          }),
      of_tree(
          "show --json",
          [](const Checkpoint& file) -> Status {
            return status_of(to_json(file.root));
          }),
      of_tree(
          "digest",
          [](const Checkpoint& file) -> Status {
            return status_of(digest(file.root, small_limits()));
          }),
      of_tree(
          "diff",
          [](const Checkpoint& file) -> Status {
            return status_of(
                diff(file.root, file.root, {.limits = small_limits()}));
          }),
      of_tree(
          "extract-model",
          [](const Checkpoint& file) -> Status {
            return status_of(extract_model(file));
          }),
      of_tree(
          "to itself",
          [](const Checkpoint& file) -> Status {
            MemoryFs fs;
            return file.program == nullptr
                       ? Status()
                       : rewrite(file, file.root, "out", {}, fs);
          }),
      of_tree(
          "optim",
          [](const Checkpoint& file) -> Status {
            LOCKSTEP_ASSIGN(const OptimState state, optim_to_cpp(file.root));
            MemoryFs fs;
            LOCKSTEP_TRY(save("out", state.root, {.format = "libtorch"}, fs));
            LOCKSTEP_ASSIGN(const Checkpoint back, load("out", {}, fs));
            return status_of(optim_to_python(back.root));
          }),
      of_tree("find", [](const Checkpoint& file) -> Status {
        return status_of(find_path(file.root, "no.such.name"));
      })};
  for (const char* format :
       {"pt", "pt-legacy", "dcp", "safetensors", "npz", "libtorch"}) {
    all.push_back(of_tree(
        std::string("to ") + format,
        [format](const Checkpoint& file) -> Status {
          return saved(file, format);
        }));
  }
  all.push_back(
      {"verify", [](const std::shared_ptr<ByteSource>& source) -> Status {
         LOCKSTEP_ASSIGN(
             const VerifyReport report,
             verify(source, "f.pt", {.limits = small_limits()}));
         return report.errors.empty()
                    ? Status()
                    : Status(Error{.detail = report.errors[0].detail});
       }});
  all.push_back(
      {"scan", [](const std::shared_ptr<ByteSource>& source) -> Status {
         const ScanReport report = scan(source, "f.pt", small_limits());
         const auto limit =
             std::ranges::find(report.notes, "E_LIMIT", &Error::detail);
         return limit == report.notes.end() ? Status() : Status(*limit);
       }});
  all.push_back(
      {"repair", [](const std::shared_ptr<ByteSource>& source) -> Status {
         MemoryFs fs;
         return status_of(
             salvage(source, "out", {.limits = small_limits()}, {}, fs));
       }});
  return all;
}

Counts count(const Use& use, const std::string& bytes) {
  const auto source = std::make_shared<CountedSource>(bytes);
  const std::uint64_t bytes_before = allocated_bytes;
  const std::uint64_t allocations_before = allocations;
  const Status status = use.run(source);
  return {
      .bytes = static_cast<double>(allocated_bytes - bytes_before),
      .allocations = static_cast<double>(allocations - allocations_before),
      .read = static_cast<double>(source->bytes_read),
      .error = status ? "" : status.error().detail};
}

// By how much a counter grows when the file doubles, of a file four times as
// large.
double growth(double small, double large, double free) {
  return large <= free ? 1
                       : std::sqrt(large / std::max(small, free / kMostGrowth));
}

class Growth : public testing::TestWithParam<HostileFile> {};

TEST_P(Growth, IsLinearInTheFileOrRefused) {
  constexpr std::size_t kBytes = 20'000;
  std::array<std::string, 3> files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    files.at(i) = GetParam().make(kBytes << i);
  }
  for (const Use& use : uses()) {
    std::array<Counts, 3> counts;
    for (std::size_t i = 0; i < files.size(); ++i) {
      counts.at(i) = count(use, files.at(i));
    }
    const Counts& first = counts.front();
    const Counts& last = counts.back();
    const double worst = last.error == "E_LIMIT"
                             ? 0
                             : std::max(
                                   {growth(first.bytes, last.bytes, kFreeBytes),
                                    growth(
                                        first.allocations,
                                        last.allocations,
                                        kFreeAllocations),
                                    growth(first.read, last.read, kFreeBytes)});
    const auto size = static_cast<double>(files.back().size());
    std::printf(
        "%-26s %-14s %8zu bytes: made %5.0f x, read %5.0f x, %7.0f "
        "allocations; growth %4.2f %s\n",
        GetParam().name.c_str(),
        use.name.c_str(),
        files.back().size(),
        last.bytes / size,
        last.read / size,
        last.allocations,
        worst,
        last.error.c_str());
    EXPECT_LE(worst, kMostGrowth) << GetParam().name << ", " << use.name;
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
  for (const auto& path : paths) {
    LoadOptions options;
    options.limits.made = std::make_shared<MadeBytes>();
    const auto file = load(path.string(), options);
    const MadeBytes& count = *options.limits.made;
    if (!file || count.read == 0) {
      continue;
    }
    const auto made = static_cast<double>(count.made);
    const auto free = static_cast<double>(options.limits.max_made_bytes);
    const double ratio =
        made / (free + kMadePerByte * static_cast<double>(count.read));
    EXPECT_LE(ratio, 0.1) << path;
    if (ratio > most) {
      most = ratio;
      worst = format(
          "{}: {} bytes made of pickles of {}",
          path.filename().string(),
          count.made,
          count.read);
    }
  }
  std::printf("most: %.4f of what is allowed (%s)\n", most, worst.c_str());
}

std::string test_name(const testing::TestParamInfo<HostileFile>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Calls,
    Growth,
    testing::ValuesIn(hostile_calls()),
    test_name);
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Growth,
    testing::ValuesIn(hostile_programs()),
    test_name);
INSTANTIATE_TEST_SUITE_P(
    Values,
    Growth,
    testing::ValuesIn(hostile_values()),
    test_name);
INSTANTIATE_TEST_SUITE_P(
    Archives,
    Growth,
    testing::ValuesIn(hostile_archives()),
    test_name);

} // namespace
} // namespace lockstep::ckpt::growth
