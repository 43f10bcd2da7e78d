// SPDX-License-Identifier: BSD-3-Clause
//
// MNIST's relatives: any size, channels and number of classes.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/array_dataset.h"
#include "lockstep/data/internal/array_parts.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/idx_file.h"

namespace lockstep::internal {
namespace {

constexpr std::string_view kIdxHint =
    "expected NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, plain or .gz, "
    "where NAME ends with train, t10k, test or val";
// The first that is there is taken, as of folders.
constexpr std::array<std::string_view, 3> kTestNames{"val", "test", "t10k"};

// The two files of a part.
struct IdxPaths {
  std::string images = {};
  std::string labels = {};
  std::int64_t dimensions = 3;

  [[nodiscard]] bool is_there() const {
    return !images.empty() || !labels.empty();
  }
};

// A set: what stands in front of train and test.
struct IdxSet {
  std::string prefix = {};
  IdxPaths train = {};
  /// As `kTestNames`.
  std::array<IdxPaths, kTestNames.size()> tests = {};

  /// The one that is taken; empty paths if there is none.
  [[nodiscard]] const IdxPaths& test() const {
    const auto* const found = std::ranges::find_if(tests, &IdxPaths::is_there);
    return found == tests.end() ? tests.front() : *found;
  }
};

// "emnist-letters-train-images-idx3-ubyte.gz" in its parts.
struct IdxName {
  std::string prefix = {};
  /// Of `kTestNames`; none: train.
  std::optional<std::size_t> test = {};
  bool is_images = false;
  std::int64_t dimensions = 0;
};

std::optional<IdxName> parsed(std::string_view name) {
  if (name.ends_with(".gz")) {
    name.remove_suffix(3);
  }
  for (const std::string_view role :
       {"-images-idx", "-labels-idx", "-images.idx", "-labels.idx"}) {
    const auto at = name.rfind(role);
    if (at == std::string_view::npos) {
      continue;
    }
    const std::string_view rest = name.substr(at + role.size());
    const std::string_view front = name.substr(0, at);
    if (rest.size() != 7 || !rest.ends_with("-ubyte")) {
      return std::nullopt;
    }
    IdxName found{
        .is_images = role.starts_with("-i"),
        .dimensions = rest[0] - '0'};
    if (front.ends_with("train")) {
      found.prefix = front.substr(0, front.size() - 5);
      return found;
    }
    for (std::size_t i = 0; i < kTestNames.size(); ++i) {
      const std::string_view part = kTestNames.at(i);
      if (front.ends_with(part)) {
        found.test = i;
        found.prefix = front.substr(0, front.size() - part.size());
        return found;
      }
    }
  }
  return std::nullopt;
}

// The sets in a folder whose names begin with `prefix`.
std::vector<IdxSet>
sets_in(FileSystem& fs, const std::string& folder, const std::string& prefix) {
  std::map<std::string, IdxSet> sets;
  for (const std::string& name : names_in(fs, folder)) {
    const auto found = parsed(name);
    if (!found || !found->prefix.starts_with(prefix)) {
      continue;
    }
    IdxSet& set = sets[found->prefix];
    set.prefix = found->prefix;
    IdxPaths& paths = found->test ? set.tests.at(*found->test) : set.train;
    std::string& path = found->is_images ? paths.images : paths.labels;
    if (path.empty()) { // a plain file goes first: it needs no decoding
      path = format("{}/{}", folder, name);
    }
    if (found->is_images) {
      paths.dimensions = found->dimensions;
    }
  }
  std::vector<IdxSet> found;
  for (auto& [name, set] : sets) {
    if (set.train.is_there()) {
      found.push_back(std::move(set));
    }
  }
  return found;
}

std::vector<IdxSet> sets_at(FileSystem& fs, const std::string& path) {
  if (!is_folder(fs, path)) {
    return sets_in(fs, parent_directory(path), base_name(path));
  }
  for (const std::string_view inner :
       {"",
        "/raw",
        "/gzip",
        "/FashionMNIST/raw",
        "/MNIST/raw",
        "/FashionMNIST",
        "/MNIST"}) {
    auto sets = sets_in(fs, path + std::string(inner), "");
    if (!sets.empty()) {
      return sets;
    }
  }
  return {};
}

ArrayPart read_part(FileSystem& fs, const IdxPaths& paths) {
  for (const std::string& path : {paths.images, paths.labels}) {
    if (path.empty()) {
      no_such_data(
          "images or labels are missing",
          paths.images.empty() ? paths.labels : paths.images,
          std::string(kIdxHint));
    }
  }
  const IdxArray images = read_idx(fs, paths.images, paths.dimensions);
  const IdxArray labels = read_idx(fs, paths.labels, 1);
  if (images.sizes[0] != labels.sizes[0]) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "data.open",
         .message = format(
             "images and labels do not fit; expected {} labels as there are "
             "images, got {}",
             images.sizes[0],
             labels.sizes[0]),
         .path = paths.labels,
         .detail = "E_DATA_FILE"});
  }
  ArrayPart part{
      .inputs = {.shape = {images.sizes.begin() + 1, images.sizes.end()}},
      .file = paths.images,
      .label_file = paths.labels};
  const auto* bytes = images.elements.data.get();
  part.inputs.rows.push_back(
      {.owner = images.elements.data,
       // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes
       .data = reinterpret_cast<const std::byte*>(bytes),
       .count = images.sizes[0],
       .stride = part.inputs.numel()});
  const std::uint8_t* first = labels.elements.data.get();
  part.classes.assign(first, first + labels.elements.size);
  return part;
}

bool begins_with(
    const std::vector<std::int64_t>& labels,
    std::span<const std::int64_t> first) {
  constexpr std::size_t kSamples = 60'000;
  return labels.size() == kSamples &&
         std::ranges::equal(std::span(labels).first(first.size()), first);
}

} // namespace

std::string idx_kind(const std::string& path, FileSystem& fs) {
  const auto sets = sets_at(fs, path);
  if (sets.empty()) {
    return "";
  }
  constexpr std::array<std::int64_t, 16>
      kFashion{9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9, 5, 5, 7, 9};
  constexpr std::array<std::int64_t, 16>
      kDigits{5, 0, 4, 1, 9, 2, 1, 3, 1, 4, 3, 5, 3, 6, 1, 7};
  if (sets.size() > 1 || !sets[0].prefix.empty() ||
      sets[0].train.labels.empty()) {
    return "idx";
  }
  try {
    const IdxArray labels = read_idx(fs, sets[0].train.labels, 1);
    const std::uint8_t* first = labels.elements.data.get();
    const std::vector<std::int64_t> numbers(
        first,
        first + labels.elements.size);
    return begins_with(numbers, kFashion)  ? "fashion-mnist"
           : begins_with(numbers, kDigits) ? "mnist"
                                           : "idx";
  } catch (const Exception&) {
    return "idx"; // whoever opens it says what is wrong
  }
}

DatasetParts open_idx(const std::string& path, const DatasetOptions& options) {
  FileSystem& fs = real_fs();
  const auto sets = sets_at(fs, path);
  if (sets.empty()) {
    no_such_data("there are no IDX files", path, std::string(kIdxHint));
  }
  if (sets.size() > 1) {
    std::vector<std::string> names;
    names.reserve(sets.size());
    for (const IdxSet& set : sets) {
      names.push_back(set.prefix);
    }
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message =
             format("the folder has several sets: {}", some_names(names)),
         .hint = format(
             "name one with its folder: --data idx --data-dir {}/{}",
             parent_directory(sets[0].train.images),
             names[0]),
         .path = path,
         .detail = "E_DATA_OPTION"});
  }
  std::vector<ArrayPart> parts{read_part(fs, sets[0].train)};
  if (const IdxPaths& test = sets[0].test(); test.is_there()) {
    parts.push_back(read_part(fs, test));
  }
  DatasetParts made = array_parts(std::move(parts), options);
  if (std::ranges::count_if(sets[0].tests, &IdxPaths::is_there) > 1) {
    made.notes.push_back(format(
        "of several parts for validation one is read: {}",
        base_name(sets[0].test().images)));
  }
  return made;
}

} // namespace lockstep::internal
