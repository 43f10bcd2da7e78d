// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/file_name.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp.h"
#include "lockstep/ckpt/formats/dcp/dcp_chunks.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/formats/dcp/dcp_tree.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

Error bad_item(
    const DcpItem& item,
    ErrorCode code,
    std::string_view detail,
    std::string_view why) {
  Error error =
      read_error(code, detail, format("'{}' {}", escape(item.name), why));
  error.record = kDcpMetadataFile;
  return error;
}

// One use of a file's bytes.
struct Use {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const DcpItem* item = nullptr;
};

class FolderReader {
 public:
  explicit FolderReader(const ReadInput& input) : input_(input) {
    file_.format = "dcp";
    file_.era = "torch.distributed.checkpoint";
    file_.byteorder = "little";
    file_.crc = CrcState::kPresent;
  }

  Result<Checkpoint> run() {
    LOCKSTEP_ASSIGN(
        const auto source,
        open_source(
            input_.path + "/" + kDcpMetadataFile,
            {.use_mmap = input_.options.use_mmap},
            *input_.fs));
    note_file(source->size());
    LOCKSTEP_ASSIGN(
        DcpMetadata metadata,
        read_dcp_metadata(*source, input_.options.limits));
    file_.globals = std::move(metadata.globals);
    file_.warnings = std::move(metadata.warnings);
    LOCKSTEP_TRY(check_places(metadata));
    LOCKSTEP_ASSIGN(file_.root, read_tree(metadata));
    return std::move(file_);
  }

 private:
  void note_file(std::uint64_t bytes) {
    file_.file_bytes += bytes;
    add_file(input_.options.limits, bytes);
  }

  // Dicts without entries where they were among the items.
  Result<Value> read_tree(const DcpMetadata& metadata) {
    internal::DcpTree tree;
    auto empty = metadata.empty.begin();
    for (std::size_t i = 0;; ++i) {
      const bool is_end = i == metadata.items.size();
      while (empty != metadata.empty.end() &&
             (is_end || empty->position <= i)) {
        LOCKSTEP_TRY(tree.add_empty(empty->path));
        ++empty;
      }
      if (is_end) {
        return tree.finish(input_.options.limits);
      }
      const DcpItem& item = metadata.items[i];
      LOCKSTEP_ASSIGN(
          Value value,
          item.is_tensor ? read_tensor(item) : read_object(item));
      LOCKSTEP_TRY(tree.add(item, std::move(value)));
    }
  }

  // Every range lies in its file and none is used twice.
  Status check_places(const DcpMetadata& metadata) {
    std::map<std::string, std::vector<Use>> uses;
    const auto add = [&](const DcpItem& item, const DcpPlace& place) -> Status {
      LOCKSTEP_TRY(open(item, place));
      if (place.length != 0) {
        uses[place.file].push_back(
            {.begin = place.offset,
             .end = place.offset + place.length,
             .item = &item});
      }
      return {};
    };
    for (const DcpItem& item : metadata.items) {
      if (!item.is_tensor) {
        LOCKSTEP_TRY(add(item, item.place));
      }
      for (const DcpChunk& chunk : item.chunks) {
        LOCKSTEP_TRY(add(item, chunk.place));
      }
    }
    for (auto& [file, ranges] : uses) {
      std::ranges::sort(ranges, {}, &Use::begin);
      for (std::size_t i = 1; i < ranges.size(); ++i) {
        if (ranges[i].begin < ranges[i - 1].end) {
          return bad_item(
              *ranges[i].item,
              ErrorCode::kCorrupt,
              "E_OVERLAP",
              format(
                  "and '{}' share bytes of '{}'",
                  escape(ranges[i - 1].item->name),
                  escape(file)));
        }
      }
    }
    return {};
  }

  Status open(const DcpItem& item, const DcpPlace& place) {
    auto known = sources_.find(place.file);
    if (known == sources_.end()) {
      if (!internal::is_plain_file_name(place.file)) {
        return bad_item(
            item,
            ErrorCode::kCorrupt,
            "E_NAME",
            format(
                "is said to be in '{}', which is not the name of a file in the "
                "folder",
                escape(place.file)));
      }
      auto source = open_source(
          input_.path + "/" + place.file,
          {.use_mmap = input_.options.use_mmap},
          *input_.fs);
      if (!source && source.error().code == ErrorCode::kNotFound) {
        return bad_item(
            item,
            ErrorCode::kNotFound,
            "E_NO_STORAGE",
            format("is stored in '{}', which is missing", escape(place.file)));
      }
      LOCKSTEP_TRY(source);
      note_file((*source)->size());
      known = sources_.emplace(place.file, *std::move(source)).first;
    }
    const std::uint64_t size = known->second->size();
    if (place.offset > size || place.length > size - place.offset) {
      return bad_item(
          item,
          ErrorCode::kCorrupt,
          "E_BOUNDS",
          format(
              "reaches past the end of '{}'; expected at most {} bytes, got "
              "offset {} "
              "and length {}",
              escape(place.file),
              size,
              place.offset,
              place.length));
    }
    return {};
  }

  std::shared_ptr<ByteSource> slice(const DcpPlace& place) {
    return slice_source(sources_.at(place.file), place.offset, place.length);
  }

  Result<Value> read_tensor(const DcpItem& item) {
    LOCKSTEP_TRY(internal::check_coverage(item, input_.options.limits));
    std::vector<internal::DcpPart> parts;
    std::uint64_t stored = 0;
    for (const DcpChunk& chunk : item.chunks) {
      if (std::ranges::find(chunk.sizes, 0) == chunk.sizes.end()) {
        stored += chunk.place.length;
        parts.push_back(
            {.offsets = chunk.offsets,
             .sizes = chunk.sizes,
             .item = slice(chunk.place)});
      }
    }
    Tensor tensor = internal::make_chunked_tensor(
        item,
        std::move(parts),
        input_.options,
        input_.load_part);
    // Items are not compressed: a tensor cannot be larger than they are.
    if (tensor.storage->nbytes > stored) {
      return bad_item(
          item,
          ErrorCode::kCorrupt,
          "E_STORAGE_SHORT",
          format(
              "is truncated; expected {} bytes, got {}",
              tensor.storage->nbytes,
              stored));
    }
    file_.storages.push_back(tensor.storage);
    return Value(std::move(tensor));
  }

  Result<Value> read_object(const DcpItem& item) {
    LOCKSTEP_ASSIGN(
        Checkpoint part,
        about(
            input_.load_part(slice(item.place), "", input_.options),
            format("'{}'", escape(item.name))));
    std::ranges::move(part.globals, std::back_inserter(file_.globals));
    std::ranges::move(part.storages, std::back_inserter(file_.storages));
    std::ranges::move(part.warnings, std::back_inserter(file_.warnings));
    return std::move(part.root);
  }

  const ReadInput& input_;
  Checkpoint file_;
  std::map<std::string, std::shared_ptr<ByteSource>> sources_;
};

} // namespace

Result<bool> claims_dcp(const ReadInput& input) {
  if (input.source != nullptr || input.fs == nullptr) {
    return false;
  }
  LOCKSTEP_ASSIGN(const auto names, input.fs->list(input.path));
  return std::ranges::any_of(names, [](const std::string& name) {
    return name == kDcpMetadataFile || name.ends_with(kDcpDataSuffix);
  });
}

Result<Checkpoint> read_dcp(const ReadInput& input) {
  const auto info = input.fs->stat(input.path + "/" + kDcpMetadataFile);
  if (!info && info.error().code == ErrorCode::kNotFound) {
    return read_error(
        ErrorCode::kCorrupt,
        "E_DCP_METADATA",
        "the folder has data but no file '.metadata': the save did not finish",
        "go back to an older checkpoint");
  }
  return FolderReader(input).run();
}

} // namespace lockstep::ckpt
