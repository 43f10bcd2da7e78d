// SPDX-License-Identifier: BSD-3-Clause
//
// Safetensors files of `torch.distributed.checkpoint`'s
// HuggingFaceStorageWriter hold pieces of tensors; a text of `__metadata__`
// says where each belongs:
// {"w": {"saved_offsets": [4, 0]}}.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_header.h"

namespace lockstep::ckpt {

/// Name of that text.
inline constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

/// First element of each piece in its whole tensor, by the tensor's name.
using SavedOffsets = std::map<std::string, std::vector<std::int64_t>>;

/// Errors: kCorrupt (E_DCP_METADATA) for text of another form.
Result<SavedOffsets> parse_saved_offsets(std::string_view text);

/// Says that not all files of a model are among `files` (W_SHARD), whose names
/// count them: "...-00001-of-00003.safetensors".
std::vector<Warning> warn_of_missing(std::span<const std::string> files);

/// Says which rows the tensors of one such file are (W_SHARD); the shards
/// beside it tell how large the whole ones are. Empty for other files. Also
/// says what `warn_of_missing` does.
std::vector<Warning> warn_of_pieces(
    const SafetensorsHeader& header,
    const ReadInput& input);

} // namespace lockstep::ckpt
