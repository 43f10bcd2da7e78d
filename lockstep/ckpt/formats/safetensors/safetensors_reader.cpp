// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lockstep/ckpt/core/range_storage.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_header.h"
#include "lockstep/ckpt/formats/safetensors/saved_offsets.h"
#include "lockstep/ckpt/formats/safetensors/state_metadata.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

bool header_fits(const ReadInput& input) {
  const auto length = internal::read_le<std::uint64_t>(input.head, 0);
  return length <= input.source->size() - kSafetensorsLengthBytes &&
         length > input.head.size() - kSafetensorsLengthBytes;
}

Tensor entry_tensor(
    SafetensorsEntry& entry,
    const std::shared_ptr<ByteSource>& source,
    std::uint64_t data_offset) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): checked on open
  Tensor tensor{.dtype = *entry.type->dtype, .sizes = std::move(entry.shape)};
  if (entry.type->bits < 8) {
    tensor.sizes.back() /= 2; // PyTorch counts bytes
  }
  tensor.strides = row_major_strides(tensor.sizes);
  tensor.storage =
      std::make_shared<Storage>(Storage{.nbytes = entry.end - entry.begin});
  tensor.storage->dtype = tensor.dtype;
  tensor.storage->source = make_range_storage(
      source,
      data_offset + entry.begin,
      tensor.storage->nbytes);
  return tensor;
}

// `__metadata__`, with the entry of our writer as the attribute that it was.
std::vector<Item> attributes_of(const SafetensorsHeader& header) {
  Dict dict;
  std::optional<Value> versions;
  for (const auto& [key, text] : header.metadata) {
    if (key == internal::kVersionsText) {
      versions = internal::read_versions(text);
    }
    if (key != internal::kVersionsText || !versions) {
      dict.items.emplace_back(key, text);
    }
  }
  std::vector<Item> attributes;
  if (versions) {
    attributes.emplace_back(kStateMetadata, *std::move(versions));
  }
  if (!dict.items.empty()) {
    attributes.emplace_back(kSafetensorsMetadata, std::move(dict));
  }
  return attributes;
}

} // namespace

Result<bool> claims_safetensors(const ReadInput& input) {
  if (input.source == nullptr || input.head.size() <= kSafetensorsLengthBytes) {
    return false;
  }
  const std::string_view text = as_text(input.head);
  // `{"meta":{` is JSON, not a length of 3 * 10^18.
  const bool is_text = std::ranges::all_of(
      text.substr(0, kSafetensorsLengthBytes),
      is_printable);
  const std::string_view header = text.substr(kSafetensorsLengthBytes);
  const std::size_t first = header.find_first_not_of(" \t\r\n");
  const bool is_short = text[6] == '\0' && text[7] == '\0';
  // The object may begin behind the head; then the length must be a real one.
  const bool has_object = first == std::string_view::npos
                              ? header_fits(input)
                              : header[first] == '{';
  return !is_text && has_object && (first == 0 || is_short);
}

Result<Checkpoint> read_safetensors(const ReadInput& input) {
  LOCKSTEP_ASSIGN(
      SafetensorsHeader header,
      read_safetensors_header(*input.source, input.options.limits));
  Checkpoint file{
      .format = "safetensors",
      .era = "safetensors",
      .byteorder = "little",
      .crc = CrcState::kAbsent,
      .file_bytes = input.source->size(),
      .warnings = std::move(header.warnings)};
  std::ranges::move(
      warn_of_pieces(header, input),
      std::back_inserter(file.warnings));
  Dict root;
  root.items.reserve(header.tensors.size());
  for (SafetensorsEntry& entry : header.tensors) {
    Tensor tensor = entry_tensor(entry, input.source, header.data_offset);
    file.storages.push_back(tensor.storage);
    root.items.emplace_back(std::move(entry.name), std::move(tensor));
  }
  if (!header.metadata.empty()) {
    root.kind = Dict::Kind::kOrderedDict;
    root.attributes = attributes_of(header);
  }
  file.root = std::move(root);
  return file;
}

} // namespace lockstep::ckpt
