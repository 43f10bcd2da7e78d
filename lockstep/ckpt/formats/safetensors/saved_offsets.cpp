// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/saved_offsets.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/dtensor.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kOffsetsKey = "saved_offsets";
constexpr std::string_view kEnding = ".safetensors";
constexpr std::size_t kMaxNamed = 20;

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

// Where a piece ends; nothing if that is beyond what counts elements.
std::optional<Extents> end_of(const Extents& begin, const Extents& shape) {
  Extents end(begin.size());
  for (std::size_t d = 0; d < begin.size(); ++d) {
    if (__builtin_add_overflow(begin[d], shape[d], &end[d])) {
      return std::nullopt;
    }
  }
  return end;
}

void grow(Extents& whole, const Extents& end) {
  whole.resize(std::max(whole.size(), end.size()));
  for (std::size_t d = 0; d < end.size(); ++d) {
    whole[d] = std::max(whole[d], end[d]);
  }
}

// What cannot be read is told when it is read itself.
void add_file(
    FolderFacts::Pieces& pieces,
    const ReadInput& input,
    const std::string& path) {
  const auto source = open_source(path, {.use_mmap = false}, *input.fs);
  if (!source) {
    return;
  }
  const auto header = read_safetensors_header(**source, input.options.limits);
  const std::string* text = header ? info_of(*header) : nullptr;
  const auto offsets =
      text == nullptr ? SavedOffsets() : parse_saved_offsets(*text);
  if (text == nullptr || !offsets) {
    return;
  }
  pieces.files.insert(base_name(path));
  for (const SafetensorsEntry& entry : header->tensors) {
    const Extents* begin = offsets_of(*offsets, entry);
    const auto end =
        begin == nullptr ? std::nullopt : end_of(*begin, entry.shape);
    if (end) {
      grow(pieces.extents[entry.name], *end);
    }
  }
}

// Extents of whole tensors, as far as the shards in a folder tell.
FolderFacts::Pieces read_pieces_in(
    const ReadInput& input,
    const std::string& folder) {
  FolderFacts::Pieces pieces;
  const auto names = input.fs->list(folder);
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    if ((*names)[i].ends_with(kEnding) &&
        pieces.files.size() < kMaxShardHeaders) {
      add_file(pieces, input, folder + "/" + (*names)[i]);
    }
  }
  if (pieces.files.size() < kMaxShardHeaders) {
    pieces.missing = warn_of_missing(
        std::vector<std::string>(pieces.files.begin(), pieces.files.end()));
  }
  return pieces;
}

Extents whole_of(
    const FolderFacts::Pieces& pieces,
    const std::string& name,
    const Extents& own_end) {
  const auto found = pieces.extents.find(name);
  Extents whole = found == pieces.extents.end() ? Extents() : found->second;
  grow(whole, own_end);
  return whole;
}

// Empty for a tensor that is whole.
std::string describe_piece(
    const SafetensorsEntry& entry,
    const Extents& begin,
    const FolderFacts::Pieces& pieces) {
  const auto end = end_of(begin, entry.shape);
  if (!end) {
    return format(
        "'{}' is said to begin at {}, behind which it has no place",
        escape(entry.name),
        std::ranges::max(begin));
  }
  const Extents whole = whole_of(pieces, entry.name, *end);
  return entry.shape == whole
             ? ""
             : format(
                   "'{}' is {}: read the folder for the whole tensor",
                   escape(entry.name),
                   piece_text(begin, *end, whole));
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
  LOCKSTEP_TRY(json.members([&](std::string_view name) -> Status {
    return json.members([&](std::string_view field) -> Status {
      if (field != kOffsetsKey) {
        return json.skip_value();
      }
      LOCKSTEP_ASSIGN(all[std::string(name)], read_offsets(json));
      return {};
    });
  }));
  LOCKSTEP_TRY(json.end());
  return all;
}

std::vector<Warning> warn_of_missing(std::span<const std::string> files) {
  std::map<std::uint32_t, std::set<std::uint32_t>> present; // by their count
  for (const std::string& name : files) {
    const auto shard = shard_number(name);
    if (shard && shard->number >= 1 && shard->number <= shard->of) {
      present[shard->of].insert(shard->number);
    }
  }
  std::vector<Warning> warnings;
  for (const auto& [of, numbers] : present) {
    std::vector<std::string> missing;
    for (std::uint32_t i = 1; i <= of && missing.size() < kMaxNamed; ++i) {
      if (!numbers.contains(i)) {
        missing.push_back(format("{:05d}-of-{:05d}", i, of));
      }
    }
    if (!missing.empty() && warnings.size() < kMaxNamed) {
      warnings.push_back(shard_warning(format(
          "{} of {} files of the model are in the folder: tensors or rows are "
          "missing with {}",
          numbers.size(),
          of,
          some_names(missing))));
    }
  }
  return warnings;
}

std::vector<Warning> warn_of_pieces(
    const SafetensorsHeader& header,
    const ReadInput& input) {
  const std::string* text = info_of(header);
  if (text == nullptr) {
    return {};
  }
  const auto offsets = parse_saved_offsets(*text);
  const std::string folder = parent_directory(input.path);
  const FolderFacts::Pieces none;
  FolderFacts own;
  FolderFacts& facts = input.options.beside ? *input.options.beside : own;
  const FolderFacts::Pieces& all =
      offsets && input.fs != nullptr
          ? facts.pieces(folder, [&] { return read_pieces_in(input, folder); })
          : none;
  if (all.files.size() == all.files.count(base_name(input.path))) {
    return {shard_warning(
        "this is one file of a distributed checkpoint, and no other is beside "
        "it: its tensors may be pieces")};
  }
  std::vector<Warning> warnings = all.missing;
  std::size_t pieces = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    const Extents* begin = offsets_of(*offsets, entry);
    std::string said =
        begin == nullptr ? "" : describe_piece(entry, *begin, all);
    if (!said.empty() && ++pieces <= kMaxNamed) {
      warnings.push_back(shard_warning(std::move(said)));
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
