// SPDX-License-Identifier: BSD-3-Clause
//
// A folder of HuggingFaceStorageWriter with `save_distributed`: each rank wrote
// a safetensors file with its pieces.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp.h"
#include "lockstep/ckpt/formats/dcp/dcp_chunks.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/saved_offsets.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kSafetensorsEnding = ".safetensors";

Result<std::vector<std::string>> shards_in(const ReadInput& folder) {
  LOCKSTEP_ASSIGN(auto names, folder.fs->list(folder.path));
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(kSafetensorsEnding);
  });
  return names;
}

// Looks for the word in the header; reading it in full comes later.
Result<bool> says_offsets(const ReadInput& folder, const std::string& name) {
  const auto info = folder.fs->stat(folder.path + "/" + name);
  if (!info || info->kind != FileInfo::Kind::kFile) {
    return false;
  }
  LOCKSTEP_ASSIGN(
      const auto source,
      open_source(folder.path + "/" + name, {.use_mmap = false}, *folder.fs));
  const auto header = read_safetensors_header(*source, folder.options.limits);
  return header && std::ranges::any_of(header->metadata, [](const auto& entry) {
           return entry.first == kShardingInfo;
         });
}

Error in_shard(Error error, const std::string& name) {
  error.record = name;
  return error;
}

class PiecesReader {
 public:
  explicit PiecesReader(const ReadInput& input) : input_(input) {
    file_.format = "safetensors-pieces";
    file_.era = "torch.distributed.checkpoint";
    file_.byteorder = "little";
    file_.crc = CrcState::kAbsent;
  }

  Result<Checkpoint> run() {
    LOCKSTEP_ASSIGN(const auto names, shards_in(input_));
    for (const std::string& name : names) {
      LOCKSTEP_TRY(add_file(name));
    }
    std::ranges::move(
        warn_of_missing(names),
        std::back_inserter(file_.warnings));
    Dict root;
    for (const std::string& name : order_) {
      LOCKSTEP_ASSIGN(Tensor tensor, whole_tensor(pieces_.at(name)));
      root.items.emplace_back(name, std::move(tensor));
    }
    file_.root = std::move(root);
    return std::move(file_);
  }

 private:
  // A tensor and what is there of it.
  struct Whole {
    DcpItem item = {};
    std::vector<internal::DcpPart> parts = {};
  };

  Status add_file(const std::string& name) {
    LOCKSTEP_ASSIGN(
        const auto source,
        open_source(
            input_.path + "/" + name,
            {.use_mmap = input_.options.use_mmap},
            *input_.fs));
    ckpt::add_file(input_.options.limits, source->size());
    auto part = input_.load_part(source, name, input_.options);
    if (!part) {
      return in_shard(std::move(part).error(), name);
    }
    const Dict* tensors = part->root.as_dict();
    if (tensors == nullptr) {
      return in_shard(bad_pieces("the file holds no names of tensors"), name);
    }
    auto offsets = offsets_in(*tensors);
    if (!offsets) {
      return in_shard(std::move(offsets).error(), name);
    }
    file_.file_bytes += part->file_bytes;
    std::erase_if(part->warnings, [](const Warning& warning) {
      return warning.name == "W_SHARD"; // the whole is read here
    });
    std::ranges::move(part->warnings, std::back_inserter(file_.warnings));
    for (const auto& [key, value] : tensors->items) {
      if (const auto tensor = value.shared_tensor()) {
        const Status added =
            add_piece(std::string(key.text()), tensor, *offsets);
        if (!added) {
          return in_shard(added.error(), name);
        }
      }
    }
    return {};
  }

  // Nothing for a file that does not say it: its tensors are whole.
  static Result<std::optional<SavedOffsets>> offsets_in(const Dict& tensors) {
    for (const auto& [key, value] : tensors.attributes) {
      const Value* info = key.text() == kSafetensorsMetadata
                              ? value.find(kShardingInfo)
                              : nullptr;
      if (info != nullptr && !info->text().empty()) {
        LOCKSTEP_ASSIGN(auto offsets, parse_saved_offsets(info->text()));
        return std::optional(std::move(offsets));
      }
    }
    return std::optional<SavedOffsets>();
  }

  Status add_piece(
      const std::string& name,
      const std::shared_ptr<Tensor>& tensor,
      const std::optional<SavedOffsets>& offsets) {
    std::vector<std::int64_t> begin(tensor->sizes.size(), 0);
    if (offsets) {
      const auto found = offsets->find(name);
      if (found == offsets->end() || found->second.size() != begin.size()) {
        return bad_pieces(format(
            "DCP_SHARDING_INFO does not say where tensor '{}' begins",
            escape(name)));
      }
      begin = found->second;
    }
    const auto [place, is_new] = pieces_.try_emplace(name);
    Whole& whole = place->second;
    if (is_new) {
      order_.push_back(name);
      whole.item = {.name = name, .is_tensor = true, .dtype = tensor->dtype};
      whole.item.sizes.resize(begin.size(), 0);
    }
    if (whole.item.dtype != tensor->dtype ||
        whole.item.sizes.size() != begin.size()) {
      return bad_pieces(format(
          "the pieces of tensor '{}' differ in type or dimensions",
          escape(name)));
    }
    for (std::size_t d = 0; d < begin.size(); ++d) {
      std::int64_t end = 0;
      if (__builtin_add_overflow(begin[d], tensor->sizes[d], &end)) {
        return bad_pieces(
            format("a piece of tensor '{}' ends nowhere", escape(name)));
      }
      whole.item.sizes[d] = std::max(whole.item.sizes[d], end);
    }
    whole.item.chunks.push_back({.offsets = begin, .sizes = tensor->sizes});
    if (std::ranges::find(tensor->sizes, 0) == tensor->sizes.end()) {
      whole.parts.push_back(
          {.offsets = std::move(begin),
           .sizes = tensor->sizes,
           .tensor = tensor});
    }
    return {};
  }

  // No larger than its pieces: they tile it.
  Result<Tensor> whole_tensor(Whole& whole) {
    if (Status status =
            internal::check_coverage(whole.item, input_.options.limits);
        !status) {
      return in_shard(status.error(), "");
    }
    Tensor tensor = internal::make_chunked_tensor(
        whole.item,
        std::move(whole.parts),
        input_.options,
        input_.load_part);
    file_.storages.push_back(tensor.storage);
    return tensor;
  }

  static Error bad_pieces(std::string message) {
    return read_error(
        ErrorCode::kCorrupt,
        "E_DCP_METADATA",
        std::move(message),
        "fetch all files of the folder again");
  }

  const ReadInput& input_;
  Checkpoint file_;
  std::map<std::string, Whole> pieces_;
  std::vector<std::string> order_;
};

} // namespace

Result<bool> claims_pieces(const ReadInput& input) {
  if (input.source != nullptr || input.fs == nullptr) {
    return false;
  }
  LOCKSTEP_ASSIGN(const auto names, shards_in(input));
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN(const bool says, says_offsets(input, name));
    if (says) {
      return true;
    }
  }
  return false;
}

Result<Checkpoint> read_pieces(const ReadInput& input) {
  return PiecesReader(input).run();
}

} // namespace lockstep::ckpt
