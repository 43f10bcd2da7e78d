// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles in a row: plain pickles, and the legacy checkpoints that have blobs
// of bytes between them.
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/formats/legacy/legacy.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"

namespace lockstep::ckpt::internal {
namespace {

using Place = ScanCollector::Place;

constexpr int kMaxObjects = 1000;

bool is_identifier(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
           c == '.' || c == ':';
  });
}

// Text files may start like pickles of protocol 0: names must look like names.
bool is_pickle(const PickleScan& scan, ByteSpan head, std::uint64_t size) {
  if (starts_like_pickle(as_text(head))) {
    return true;
  }
  if (scan.names.empty()) {
    return !scan.broken && scan.consumed == size && size > 1;
  }
  return std::ranges::all_of(scan.names, [](const PickleName& name) {
    return is_identifier(name.name);
  });
}

std::map<std::string, std::uint64_t> element_sizes(
    const std::vector<PickleStorage>& storages) {
  std::map<std::string, std::uint64_t> sizes;
  for (const PickleStorage& storage : storages) {
    sizes.try_emplace(storage.key, dtype_info(storage.dtype).size);
  }
  return sizes;
}

// Walks through the pickles and blobs of one legacy checkpoint.
class LegacyScan {
 public:
  LegacyScan(ByteSource& source, std::string record, ScanCollector& out)
      : source_(source), record_(std::move(record)), out_(out) {}

  // The offset after its last blob; nothing if it is broken.
  std::optional<std::uint64_t> run(std::uint64_t at) {
    constexpr int kPickles = 4; // protocol, system, object, keys
    std::vector<PickleStorage> storages;
    std::vector<std::shared_ptr<const std::string>> keys;
    for (int i = 0; i < kPickles; ++i) {
      auto scan = scan_pickle_at(
          source_,
          at,
          {.limits = out_.limits(), .collect_texts = i + 1 == kPickles});
      if (!scan) {
        return fail(std::move(scan).error());
      }
      out_.add(*scan, {.record = record_, .offset = at});
      if (scan->broken) {
        return std::nullopt;
      }
      at += scan->consumed;
      if (!scan->storages.empty()) {
        storages = std::move(scan->storages);
      }
      keys = std::move(scan->texts);
    }
    return skip_blobs(at, element_sizes(storages), keys);
  }

 private:
  std::optional<std::uint64_t> skip_blobs(
      std::uint64_t at,
      const std::map<std::string, std::uint64_t>& sizes,
      const std::vector<std::shared_ptr<const std::string>>& keys) {
    // By address: a text of a megabyte may be there a thousand times.
    std::map<const std::string*, std::uint64_t> known;
    for (const auto& shared : keys) {
      const std::string& key = *shared;
      const auto [row, is_new] = known.try_emplace(shared.get(), 0);
      if (is_new) {
        const auto size = sizes.find(key);
        if (size == sizes.end()) {
          return fail(blob_error(at, "E_NO_STORAGE", key, "nothing uses it"));
        }
        row->second = size->second;
      }
      std::vector<std::byte> scratch;
      auto head = source_.view(at, sizeof(std::uint64_t), scratch);
      if (!head) {
        return fail(
            blob_error(at, "E_TRUNCATED", key, "its length is truncated"));
      }
      at += head->size();
      const auto numel = read_le<std::uint64_t>(*head, 0);
      if (numel > (source_.size() - at) / row->second) {
        return fail(
            blob_error(at, "E_TRUNCATED", key, "its bytes are truncated"));
      }
      at += numel * row->second;
    }
    return at;
  }

  static Error blob_error(
      std::uint64_t at,
      std::string_view detail,
      const std::string& key,
      std::string_view what) {
    Error error =
        corrupt_file(detail, format("storage '{}': {}", escape(key), what));
    error.offset = at;
    return error;
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

void warn_trailing(
    ScanCollector& out,
    const Place& place,
    std::uint64_t rest,
    bool is_pickle) {
  if (is_pickle) {
    out.add_warning("W_TRAILING_PICKLE", "another pickle follows", place);
  } else {
    out.add_warning(
        "W_TRAILING",
        format("{} bytes follow that are not a pickle", rest),
        place);
  }
}

// What comes after an object. False for an array, whose pickle would not be
// seen.
bool note_follower(
    ScanCollector& out,
    const Place& place,
    ByteSpan head,
    std::uint64_t rest,
    bool is_pickle) {
  if (!is_npy(head)) {
    warn_trailing(out, place, rest, is_pickle);
    return true;
  }
  Error error = read_error(
      ErrorCode::kUnsupported,
      "E_TRAILING",
      "a NumPy array follows the pickle");
  error.record = place.record;
  error.offset = place.offset;
  out.add_unreadable(std::move(error));
  return false;
}

} // namespace

bool scan_stream(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out) {
  std::uint64_t at = 0;
  for (int object = 0; at < source.size() && object < kMaxObjects; ++object) {
    Place here = place;
    here.offset += at;
    std::vector<std::byte> scratch;
    auto scan = scan_pickle_at(source, at, {.limits = out.limits()});
    auto head = source.view(
        at,
        std::min<std::uint64_t>(source.size() - at, kLegacyHeadBytes),
        scratch);
    if (!scan || !head) {
      out.add_unreadable(scan ? head.error() : scan.error());
      return true;
    }
    const bool is_legacy = starts_like_legacy(*head);
    const bool looks_right =
        is_legacy || is_pickle(*scan, *head, source.size() - at);
    if (object != 0 &&
        !note_follower(out, here, *head, source.size() - at, looks_right)) {
      return true;
    }
    if (!looks_right) {
      return object != 0;
    }
    out.set_format(is_legacy ? "legacy" : "pickle");
    out.add(*scan, here);
    if (scan->broken) {
      return true;
    }
    at += scan->consumed;
    if (is_legacy) {
      const auto end = LegacyScan(source, place.record, out).run(at);
      if (!end) {
        return true;
      }
      at = *end;
    }
  }
  if (at < source.size()) {
    out.add_unreadable(read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("more than {} pickles in a row", kMaxObjects)));
  }
  return true;
}

} // namespace lockstep::ckpt::internal
