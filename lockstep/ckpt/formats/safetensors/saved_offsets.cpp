// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/saved_offsets.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kOffsetsKey = "saved_offsets";
constexpr std::string_view kEnding = ".safetensors";
constexpr std::size_t kMaxNamed = 20;
// Headers to read for the sizes of whole tensors.
constexpr std::size_t kMaxShards = 4096;

using Extents = std::vector<std::int64_t>;

Result<Extents> read_offsets(JsonScanner& json) {
  Extents offsets;
  LOCKSTEP_TRY(json.elements([&]() -> Status {
    LOCKSTEP_ASSIGN(const std::uint64_t value, json.unsigned_integer());
    if (!std::in_range<std::int64_t>(value)) {
      return json.error("an offset does not fit in 63 bits");
    }
    offsets.push_back(static_cast<std::int64_t>(value));
    return {};
  }));
  return offsets;
}

// The text of a header; null without one, as Python reads an empty one.
const std::string* info_of(const SafetensorsHeader& header) {
  for (const auto& [key, text] : header.metadata) {
    if (key == kShardingInfo && !text.empty()) {
      return &text;
    }
  }
  return nullptr;
}

// A tensor and where it begins in the whole one; null if the text does not say.
const Extents* offsets_of(
    const SavedOffsets& offsets,
    const SafetensorsEntry& entry) {
  const auto found = offsets.find(entry.name);
  return found != offsets.end() && found->second.size() == entry.shape.size()
             ? &found->second
             : nullptr;
}

// Extents of whole tensors, as far as the shards in a folder tell.
class WholeSizes {
 public:
  void add(const SafetensorsHeader& header, const SavedOffsets& offsets) {
    for (const SafetensorsEntry& entry : header.tensors) {
      const Extents* begin = offsets_of(offsets, entry);
      if (begin == nullptr) {
        continue;
      }
      Extents& whole = sizes_[entry.name];
      whole.resize(std::max(whole.size(), begin->size()));
      for (std::size_t d = 0; d < begin->size(); ++d) {
        std::int64_t end = 0;
        if (!__builtin_add_overflow((*begin)[d], entry.shape[d], &end)) {
          whole[d] = std::max(whole[d], end);
        }
      }
    }
  }

  // The shards beside the input, not it itself. Returns their number.
  std::size_t add_others(const ReadInput& input) {
    const std::string folder = parent_directory(input.path);
    const auto names = input.fs->list(folder);
    std::size_t count = 0;
    if (!names) {
      return 0;
    }
    for (const std::string& name : *names) {
      if (name.ends_with(kEnding) && name != base_name(input.path) &&
          count < kMaxShards && add_file(input, folder + "/" + name)) {
        ++count;
      }
    }
    return count;
  }

  [[nodiscard]] const Extents& of(const std::string& name) const {
    return sizes_.at(name);
  }

 private:
  // What cannot be read is told when it is read itself.
  bool add_file(const ReadInput& input, const std::string& path) {
    const auto source = open_source(path, {.use_mmap = false}, *input.fs);
    if (!source) {
      return false;
    }
    const auto header = read_safetensors_header(**source, input.options.limits);
    const std::string* text = header ? info_of(*header) : nullptr;
    const auto offsets =
        text == nullptr ? SavedOffsets() : parse_saved_offsets(*text);
    if (text == nullptr || !offsets) {
      return false;
    }
    add(*header, *offsets);
    return true;
  }

  std::map<std::string, Extents> sizes_;
};

// "rows 0..4 of 7", or "[0:4, 2:5] of [7, 5]" if more than rows are cut.
std::string
piece_text(const Extents& begin, const Extents& shape, const Extents& whole) {
  bool is_rows = !shape.empty();
  std::vector<std::string> ranges;
  std::vector<std::string> sizes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    is_rows = is_rows && (d == 0 || shape[d] == whole[d]);
    ranges.push_back(format("{}:{}", begin[d], begin[d] + shape[d]));
    sizes.push_back(std::to_string(whole[d]));
  }
  return is_rows
             ? format(
                   "rows {}..{} of {}",
                   begin[0],
                   begin[0] + shape[0],
                   whole[0])
             : format("[{}] of [{}]", join(ranges, ", "), join(sizes, ", "));
}

Warning shard_warning(std::string text) {
  return {.name = "W_SHARD", .text = std::move(text)};
}

} // namespace

Result<SavedOffsets> parse_saved_offsets(std::string_view text) {
  JsonScanner json(
      text,
      {.detail = "E_DCP_METADATA",
       .duplicate_detail = "E_DCP_METADATA",
       .what = "invalid DCP_SHARDING_INFO"});
  SavedOffsets all;
  LOCKSTEP_TRY(json.members([&](const std::string& name) -> Status {
    return json.members([&](const std::string& field) -> Status {
      if (field != kOffsetsKey) {
        return json.skip_value();
      }
      LOCKSTEP_ASSIGN(all[name], read_offsets(json));
      return {};
    });
  }));
  LOCKSTEP_TRY(json.end());
  return all;
}

std::vector<Warning> warn_of_pieces(
    const SafetensorsHeader& header,
    const ReadInput& input) {
  const std::string* text = info_of(header);
  if (text == nullptr) {
    return {};
  }
  WholeSizes whole;
  const auto offsets = parse_saved_offsets(*text);
  const std::size_t others =
      offsets && input.fs != nullptr ? whole.add_others(input) : 0;
  if (others == 0) {
    return {shard_warning(
        "this is one file of a distributed checkpoint, and no other is beside "
        "it: its tensors may be pieces")};
  }
  whole.add(header, *offsets);
  std::vector<Warning> warnings;
  std::size_t pieces = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    const Extents* begin = offsets_of(*offsets, entry);
    if (begin == nullptr || entry.shape == whole.of(entry.name)) {
      continue;
    }
    if (++pieces <= kMaxNamed) {
      warnings.push_back(shard_warning(format(
          "'{}' is {}: read the folder for the whole tensor",
          escape(entry.name),
          piece_text(*begin, entry.shape, whole.of(entry.name)))));
    }
  }
  if (pieces > kMaxNamed) {
    warnings.push_back(shard_warning(format(
        "{} are pieces, too",
        counted(pieces - kMaxNamed, "more tensor"))));
  }
  return warnings;
}

} // namespace lockstep::ckpt
