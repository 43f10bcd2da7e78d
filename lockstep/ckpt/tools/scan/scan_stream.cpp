// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles in a row: plain pickles, and the legacy checkpoints that have blobs
// of bytes between them.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/formats/legacy/legacy.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/pickle/dangerous_names.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/text_codec.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"

namespace lockstep::ckpt::internal {
namespace {

using Place = ScanCollector::Place;

// Pickles behind others of which each is told.
constexpr int kToldFollowers = 100;

// True for the name at which the scan broke: Python's unpickler in C does not
// get so far.
bool is_last(const PickleName& name, const PickleScan& scan) {
  return scan.broken && scan.broken->offset == std::optional(name.offset);
}

// Whether a name says that the bytes are a pickle. Texts may start like GLOBAL,
// noise like EXT.
bool is_telling(const PickleName& name, const PickleScan& scan) {
  return may_be_asked_for(name, scan) &&
         (!is_last(name, scan) || is_dangerous_path(name.name));
}

// `is_sure`: the file is called like a pickle.
bool is_pickle(
    const PickleScan& scan,
    ByteSpan head,
    std::uint64_t size,
    bool is_sure) {
  const bool is_whole = !scan.broken && scan.consumed == size && size > 1;
  return is_whole || starts_like_pickle(as_text(head)) ||
         std::ranges::any_of(scan.names, [&](const PickleName& name) {
           return is_telling(name, scan) || (is_sure && !is_last(name, scan));
         });
}

using DTypes = std::map<std::string, std::optional<DType>>;

// The first storage of a key stays, as in Python.
DTypes dtypes_of(const std::vector<PickleStorage>& storages) {
  DTypes dtypes;
  for (const PickleStorage& storage : storages) {
    dtypes.try_emplace(storage.key, storage.dtype);
  }
  return dtypes;
}

// Walks through the pickles and blobs of one legacy checkpoint.
class LegacyScan {
 public:
  LegacyScan(ByteSource& source, std::string record, ScanCollector& out)
      : source_(source), record_(std::move(record)), out_(out) {}

  // The offset after its last blob; nothing if it is broken.
  std::optional<std::uint64_t> run(std::uint64_t at) {
    constexpr int kPickles = 4; // protocol, system, object, keys
    PickleScan object;
    PickleScan keys;
    for (int i = 0; i < kPickles; ++i) {
      auto scan = scan_pickle_at(
          source_,
          at,
          {.limits = out_.limits(),
           .collect_texts = i + 1 == kPickles,
           .has_joblib_arrays = false,
           .has_changed_names = out_.has_changed_names()});
      if (!scan) {
        return fail(std::move(scan).error());
      }
      out_.add(*scan, {.record = record_, .offset = at});
      if (scan->broken) {
        return std::nullopt;
      }
      at += scan->consumed;
      object = std::exchange(keys, *std::move(scan));
    }
    if (at != source_.size() &&
        (object.has_unknown_ids || out_.has_changed_names() ||
         keys.root != PickleRoot::kTexts)) {
      return fail(
          blob_error(at, "E_PICKLE", "nothing tells the lengths of storages"));
    }
    return skip_blobs(at, dtypes_of(object.storages), keys.texts);
  }

 private:
  std::optional<std::uint64_t> skip_blobs(
      std::uint64_t at,
      const DTypes& dtypes,
      const std::vector<std::shared_ptr<const std::string>>& keys) {
    // By address: a text of a megabyte may be there a thousand times.
    std::map<const std::string*, std::uint64_t> known;
    for (const auto& shared : keys) {
      const std::string& key = *shared;
      const auto [row, is_new] = known.try_emplace(shared.get(), 0);
      if (is_new) {
        const auto dtype = dtypes.find(key);
        if (dtype == dtypes.end() || !dtype->second) {
          return fail(key_error(
              at,
              "E_NO_STORAGE",
              key,
              dtype == dtypes.end() ? "nothing uses it"
                                    : "its class is not known"));
        }
        // NOLINTNEXTLINE(bugprone-unchecked-optional-access): see above
        row->second = dtype_info(*dtype->second).size;
      }
      std::vector<std::byte> scratch;
      auto head = source_.view(at, sizeof(std::uint64_t), scratch);
      if (!head) {
        return fail(
            key_error(at, "E_TRUNCATED", key, "its length is truncated"));
      }
      at += head->size();
      const auto numel = read_le<std::uint64_t>(*head, 0);
      if (numel > (source_.size() - at) / row->second) {
        return fail(
            key_error(at, "E_TRUNCATED", key, "its bytes are truncated"));
      }
      at += numel * row->second;
    }
    return at;
  }

  static Error
  blob_error(std::uint64_t at, std::string_view detail, std::string what) {
    return corrupt_file(detail, std::move(what), {}, at);
  }

  static Error key_error(
      std::uint64_t at,
      std::string_view detail,
      const std::string& key,
      std::string_view what) {
    return blob_error(
        at,
        detail,
        format("storage '{}': {}", escape(key), what));
  }

  std::nullopt_t fail(Error error) {
    error.record = record_;
    out_.add_unreadable(std::move(error));
    return std::nullopt;
  }

  ByteSource& source_;
  std::string record_;
  ScanCollector& out_;
};

bool is_zeros(ByteSource& source, std::uint64_t at) {
  constexpr std::uint64_t kBlock = 1 << 16;
  std::vector<std::byte> scratch;
  while (at < source.size()) {
    const auto block =
        source.view(at, std::min(kBlock, source.size() - at), scratch);
    if (!block || std::ranges::any_of(*block, [](std::byte byte) {
          return byte != std::byte{0};
        })) {
      return false;
    }
    at += block->size();
  }
  return true;
}

// Says what comes after an object, at `at`: another pickle, fill bytes, or what
// is not read.
void note_follower(
    ScanCollector& out,
    const Place& place,
    ByteSource& source,
    std::uint64_t at,
    bool is_pickle) {
  if (is_pickle) {
    out.add_warning("W_TRAILING_PICKLE", "another pickle follows", place);
    return;
  }
  const std::uint64_t rest = source.size() - at;
  if (is_zeros(source, at)) {
    out.add_warning("W_TRAILING", format("{} zeros follow", rest), place);
    return;
  }
  std::vector<std::byte> scratch;
  const auto head =
      source.view(at, std::min<std::uint64_t>(rest, kNpyMagic.size()), scratch);
  out.add_unreadable(
      read_error(
          ErrorCode::kUnsupported,
          "E_TRAILING",
          head && is_npy(*head)
              ? "a NumPy array follows the pickle"
              : format("{} bytes follow that are not a pickle", rest)),
      place);
}

} // namespace

bool is_pickle_here(
    ByteSource& source,
    std::uint64_t offset,
    const PickleScan& scan) {
  std::vector<std::byte> scratch;
  const std::uint64_t rest = source.size() - offset;
  const auto head = source.view(
      offset,
      std::min<std::uint64_t>(rest, kLegacyHeadBytes),
      scratch);
  return head && is_pickle(scan, *head, rest, /*is_sure=*/false);
}

namespace {

// Pickles in a row, from the first to what cannot be read.
class StreamScan {
 public:
  StreamScan(ByteSource& source, const Place& place, ScanCollector& out)
      : source_(source), place_(place), out_(out) {}

  bool run() {
    while (at_ < source_.size() && scan_next()) {
    }
    return is_known_;
  }

 private:
  // False at the end of what can be read.
  bool scan_next() {
    Place here = place_;
    here.offset += at_;
    std::vector<std::byte> scratch;
    const std::uint64_t rest = source_.size() - at_;
    auto scan = scan_pickle_at(
        source_,
        at_,
        {.limits = out_.limits(),
         .has_joblib_arrays = place_.record.empty(),
         .has_changed_names = out_.has_changed_names()});
    const auto head = source_.view(
        at_,
        std::min<std::uint64_t>(rest, kLegacyHeadBytes),
        scratch);
    if (!scan || !head) {
      out_.add_unreadable(scan ? head.error() : scan.error());
      is_known_ = true;
      return false;
    }
    const bool is_legacy = starts_like_legacy(*head);
    const bool looks_right =
        is_legacy || is_pickle(*scan, *head, rest, place_.is_sure);
    if (is_known_) {
      follow(here, looks_right);
    }
    if (!looks_right) {
      return skip_value(*scan, here);
    }
    for (const auto& [value, place] : std::exchange(values_, {})) {
      out_.add(value, place);
    }
    out_.set_format(is_legacy ? "legacy" : "pickle");
    is_known_ = true;
    out_.add(*scan, here);
    at_ += scan->consumed;
    return !scan->broken && (!is_legacy || skip_legacy());
  }

  void follow(const Place& here, bool is_pickle) {
    followers_ += is_pickle ? 1 : 0;
    if (!is_pickle || followers_ <= kToldFollowers) {
      note_follower(out_, here, source_, at_, is_pickle);
    } else if (followers_ == kToldFollowers + 1) {
      out_.add_warning(
          "W_TRAILING_PICKLE",
          "more pickles follow; all are scanned",
          here);
    }
  }

  // A number or the like that says nothing of what it is: what follows tells.
  bool skip_value(PickleScan& scan, const Place& here) {
    out_.note_unlikely(scan, here);
    if (is_known_ || scan.broken) {
      return false;
    }
    at_ += scan.consumed;
    values_.emplace_back(std::move(scan), here);
    return true;
  }

  bool skip_legacy() {
    const auto end = LegacyScan(source_, place_.record, out_).run(at_);
    at_ = end.value_or(at_);
    return end.has_value();
  }

  ByteSource& source_;
  Place place_;
  ScanCollector& out_;
  std::uint64_t at_ = 0;
  int followers_ = 0;
  bool is_known_ = false;
  std::vector<std::pair<PickleScan, Place>> values_;
};

} // namespace

bool scan_stream(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out) {
  return StreamScan(source, place, out).run();
}

} // namespace lockstep::ckpt::internal
