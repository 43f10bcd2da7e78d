// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/pixel_cache.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/disk_cache.h"

namespace lockstep::internal {
namespace {

class NoCache final : public PixelCache {
 public:
  const std::uint8_t* get(
      std::int64_t /*index*/,
      const Make& make,
      std::vector<std::uint8_t>& scratch) override {
    scratch = make();
    return scratch.data();
  }
};

class RamCache final : public PixelCache {
 public:
  explicit RamCache(const CachedList& list)
      : starts_(starts_of(list.sizes)), states_(list.sizes.size()) {
    check_room();
    if (starts_.back() == 0) {
      return; // there are no pixels to keep
    }
    // Not touched, so not taken, before a sample is kept.
    memory_ = ::mmap(
        nullptr,
        starts_.back(),
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0);
    if (memory_ == MAP_FAILED) {
      refuse();
    }
  }
  RamCache(const RamCache&) = delete;
  RamCache& operator=(const RamCache&) = delete;
  ~RamCache() override {
    if (memory_ != nullptr) {
      ::munmap(memory_, starts_.back());
    }
  }

  const std::uint8_t* get(
      std::int64_t index,
      const Make& make,
      std::vector<std::uint8_t>& scratch) override {
    const auto at = static_cast<std::size_t>(index);
    std::uint8_t* place = static_cast<std::uint8_t*>(memory_) + starts_[at];
    std::atomic<State>& state = states_[at];
    if (state.load(std::memory_order_acquire) == State::kFilled) {
      return place;
    }
    scratch = make();
    TORCH_INTERNAL_ASSERT(scratch.size() == starts_[at + 1] - starts_[at]);
    State empty = State::kEmpty;
    if (state.compare_exchange_strong(empty, State::kFilling)) {
      std::memcpy(place, scratch.data(), scratch.size());
      state.store(State::kFilled, std::memory_order_release);
    }
    return scratch.data();
  }

 private:
  enum class State : std::uint8_t { kEmpty, kFilling, kFilled };

  void check_room() const {
    struct sysinfo info = {};
    if (::sysinfo(&info) == 0 &&
        starts_.back() > std::uint64_t{info.totalram} * info.mem_unit) {
      refuse();
    }
  }
  [[noreturn]] void refuse() const {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.cache",
         .message = format(
             "the images take {} in memory, more than there is",
             human_bytes(starts_.back())),
         .hint = "--cache disk, a smaller --img-size, or --cache none",
         .detail = "E_CACHE"});
  }

  std::vector<std::uint64_t> starts_;
  std::vector<std::atomic<State>> states_;
  void* memory_ = nullptr;
};

} // namespace

std::vector<std::uint64_t> starts_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> starts;
  starts.reserve(sizes.size() + 1);
  starts.push_back(0);
  for (const std::uint64_t size : sizes) {
    starts.push_back(starts.back() + size);
  }
  return starts;
}

std::string user_cache_folder() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody sets variables meanwhile
  const char* const caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && *caches != '\0') {
    return format("{}/lockstep/images", caches);
  }
  const char* const home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  return home == nullptr || *home == '\0'
             ? ""
             : format("{}/.cache/lockstep/images", home);
}

std::unique_ptr<PixelCache> make_pixel_cache(
    ImageCache where,
    const std::string& folder,
    const CachedList& list,
    FileSystem& fs) {
  if (where == ImageCache::kNone || list.sizes.empty()) {
    return std::make_unique<NoCache>();
  }
  if (where == ImageCache::kRam) {
    return std::make_unique<RamCache>(list);
  }
  return make_disk_cache(
      folder.empty() ? user_cache_folder() : folder,
      list,
      fs);
}

} // namespace lockstep::internal
