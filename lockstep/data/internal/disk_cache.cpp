// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"

namespace lockstep::internal {
namespace {

constexpr std::array<char, 16> kMagic{"lockstep images"};
constexpr std::uint64_t kCacheAlignment = 64;

struct Head {
  std::array<char, 16> magic = kMagic;
  std::uint64_t fingerprint = 0;
  std::uint64_t count = 0;
  /// Of all samples.
  std::uint64_t bytes = 0;

  friend bool operator==(const Head&, const Head&) = default;
};
static_assert(sizeof(Head) <= kCacheAlignment);

std::uint64_t text_hash(const std::string& text, std::uint64_t hash) {
  return hash_of(text.data(), text.size(), hash);
}

struct Fingerprints {
  /// Of the names and the recipe: whose file it is.
  std::uint64_t name = 0;
  /// With sizes and times: whether it still fits.
  std::uint64_t content = 0;
};

Fingerprints fingerprints_of(const CachedList& list, FileSystem& fs) {
  Fingerprints prints;
  prints.name = text_hash(list.recipe, prints.name);
  prints.content =
      hash_of(list.sizes.data(), list.sizes.size() * sizeof(list.sizes[0]));
  for (std::int64_t i = 0; i < std::ssize(list.sizes); ++i) {
    list.paths(i, [&](const std::string& path) {
      const FileInfo info = fs.stat(path).value();
      prints.name = text_hash(path, prints.name);
      const std::array<std::uint64_t, 2> state{
          info.size,
          static_cast<std::uint64_t>(info.modified)};
      prints.content = hash_of(state.data(), sizeof(state), prints.content);
    });
  }
  prints.content ^= prints.name;
  return prints;
}

[[noreturn]] void
fail(int number, std::string_view what, const std::string& path) {
  Error error = errno_error("data.cache", path, number);
  error.message = format("{}: {}", what, error.message);
  error.hint = "--cache none or ram do without the file";
  raise(std::move(error));
}

// Held until it is closed. Where the file system has no locks each process may
// make a file of its own, of which the last one stays.
Descriptor locked(const std::string& folder) {
  Descriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle) {
    fail(errno, "cannot open the folder", folder);
  }
  while (::flock(handle.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return handle;
}

class DiskCache final : public PixelCache {
 public:
  DiskCache(
      const std::string& folder,
      const CachedList& list,
      const Fingerprints& prints)
      : path_(format("{}/{:016x}.pixels", folder, prints.name)),
        starts_(starts_of(list.sizes)),
        head_{
            .fingerprint = prints.content,
            .count = list.sizes.size(),
            .bytes = starts_.back()},
        states_(list.sizes.size()) {
    const std::uint64_t sums =
        kCacheAlignment + head_.count * sizeof(std::uint64_t);
    first_ = (sums + kCacheAlignment - 1) / kCacheAlignment * kCacheAlignment;
    bytes_ = first_ + head_.bytes;
    // Of ranks that begin together one makes the file, and all map it.
    const Descriptor lock = locked(folder);
    if (!map_existing()) {
      make_file();
    }
  }
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;
  ~DiskCache() override {
    ::munmap(memory_, bytes_);
  }

  const std::uint8_t* get(
      std::int64_t index,
      const Make& make,
      std::vector<std::uint8_t>& scratch) override {
    const auto at = static_cast<std::uint64_t>(index);
    std::atomic<State>& state = states_[at];
    const std::span<std::uint8_t> place(
        memory_ + first_ + starts_[at],
        starts_[at + 1] - starts_[at]);
    if (state.load(std::memory_order_acquire) == State::kGood ||
        is_kept(at, place, state)) {
      return place.data();
    }
    scratch = make();
    TORCH_INTERNAL_ASSERT(scratch.size() == place.size());
    State unknown = State::kUnknown;
    if (state.compare_exchange_strong(unknown, State::kFilling)) {
      std::ranges::copy(scratch, place.begin());
      sum_of(at).store(checksum(scratch), std::memory_order_release);
      state.store(State::kGood, std::memory_order_release);
    }
    return scratch.data();
  }

 private:
  // What this process knows of a sample.
  enum class State : std::uint8_t { kUnknown, kFilling, kGood };

  // Whether another process, or an earlier one, has kept it whole.
  bool is_kept(
      std::uint64_t at,
      std::span<const std::uint8_t> place,
      std::atomic<State>& state) {
    const std::uint64_t sum = sum_of(at).load(std::memory_order_acquire);
    if (sum == 0 || state.load() == State::kFilling || sum != checksum(place)) {
      return false;
    }
    State unknown = State::kUnknown;
    return state.compare_exchange_strong(unknown, State::kGood) ||
           unknown == State::kGood;
  }

  static std::uint64_t checksum(std::span<const std::uint8_t> sample) {
    return hash_of(sample.data(), sample.size()) | 1U; // 0: not there
  }

  [[nodiscard]] std::atomic_ref<std::uint64_t> sum_of(std::uint64_t at) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): aligned
    auto* sums = reinterpret_cast<std::uint64_t*>(memory_ + kCacheAlignment);
    return std::atomic_ref<std::uint64_t>(sums[at]);
  }

  void map(int file, const std::string& path) {
    void* memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      fail(errno, "cannot map the file", path);
    }
    memory_ = static_cast<std::uint8_t*>(memory);
  }

  // False if there is no file that fits.
  bool map_existing() {
    const Descriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    struct stat info = {};
    if (!file || ::fstat(file.get(), &info) != 0 ||
        static_cast<std::uint64_t>(info.st_size) != bytes_) {
      return false;
    }
    Head head;
    if (::pread(file.get(), &head, sizeof(head), 0) != sizeof(head) ||
        head != head_) {
      return false;
    }
    map(file.get(), path_);
    return true;
  }

  // Beside the name first: whoever finds the file finds it whole. A stale one
  // that another process has mapped lives on without its name.
  void make_file() {
    const std::string temporary = format("{}.{}", path_, ::getpid());
    constexpr mode_t kMode = 0644;
    const Descriptor file(::open(
        temporary.c_str(),
        O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
        kMode));
    if (!file) {
      fail(errno, "cannot make the file", temporary);
    }
    // Now, not at a write into the mapping, which would end the process.
    int number = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes_));
    if (number == 0 &&
        ::pwrite(file.get(), &head_, sizeof(head_), 0) != sizeof(head_)) {
      number = errno;
    }
    if (number == 0 && std::rename(temporary.c_str(), path_.c_str()) != 0) {
      number = errno;
    }
    if (number != 0) {
      ::unlink(temporary.c_str());
      fail(
          number,
          format("cannot make a file of {}", human_bytes(bytes_)),
          path_);
    }
    map(file.get(), path_);
  }

  std::string path_;
  /// Units: bytes, from the first sample.
  std::vector<std::uint64_t> starts_;
  Head head_;
  std::vector<std::atomic<State>> states_;
  /// Units: bytes from the start to the first sample.
  std::uint64_t first_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint8_t* memory_ = nullptr;
};

} // namespace

std::unique_ptr<PixelCache> make_disk_cache(
    const std::string& folder,
    const CachedList& list,
    FileSystem& fs) {
  if (folder.empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.cache",
         .message = "there is no folder for the cache",
         .hint = "set HOME or XDG_CACHE_HOME, or --cache ram",
         .detail = "E_CACHE"});
  }
  real_fs().create_directories(folder).value();
  return std::make_unique<DiskCache>(folder, list, fingerprints_of(list, fs));
}

} // namespace lockstep::internal
