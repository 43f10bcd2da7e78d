// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/file_name.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/shard_attributes.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";

constexpr std::string_view kMap = "weight_map";

Error bad_index(
    ErrorCode code,
    std::string message,
    std::optional<std::uint64_t> offset = {}) {
  Error error = read_error(code, "E_INDEX", std::move(message));
  error.offset = offset;
  return error;
}

// One entry of the index.
struct Placement {
  std::string name = {};
  std::string file = {};
  std::uint64_t offset = 0;
};

Result<std::vector<Placement>> read_map(JsonScanner& json) {
  std::vector<Placement> placements;
  LOCKSTEP_TRY(json.members([&](std::string_view name) -> Status {
    const std::uint64_t at = json.key_offset();
    LOCKSTEP_ASSIGN(std::string file, json.string());
    if (!internal::is_plain_file_name(file)) {
      return bad_index(
          ErrorCode::kCorrupt,
          format(
              "tensor '{}' is said to be in '{}', which is not the name of a "
              "file "
              "beside the index",
              escape(name),
              escape(file)),
          at);
    }
    placements.push_back(
        {.name = std::string(name), .file = std::move(file), .offset = at});
    return {};
  }));
  return placements;
}

Result<std::vector<Placement>> parse_index(std::string_view text) {
  JsonScanner json(
      text,
      {.detail = "E_INDEX",
       .duplicate_detail = "E_INDEX",
       .what = "invalid JSON in index"});
  std::vector<Placement> placements;
  bool has_map = false;
  LOCKSTEP_TRY(json.members([&](std::string_view key) -> Status {
    if (key != kMap) {
      return json.skip_value();
    }
    has_map = true;
    LOCKSTEP_ASSIGN(placements, read_map(json));
    return {};
  }));
  LOCKSTEP_TRY(json.end());
  if (!has_map) {
    return bad_index(ErrorCode::kCorrupt, "the index has no 'weight_map'");
  }
  return placements;
}

class ShardedReader {
 public:
  explicit ShardedReader(const ReadInput& input) : input_(input) {
    file_.format = "sharded";
    file_.era = "files beside an index";
    file_.byteorder = "little";
    file_.crc = CrcState::kAbsent;
  }

  Result<Checkpoint> run(const std::vector<Placement>& placements) {
    file_.file_bytes = input_.source->size();
    Dict root;
    root.items.reserve(placements.size());
    for (const Placement& placement : placements) {
      LOCKSTEP_ASSIGN(Shard * shard, open(placement));
      const auto found = shard->tensors.find(placement.name);
      if (found == shard->tensors.end()) {
        return bad_index(
            ErrorCode::kCorrupt,
            format(
                "'{}' has no tensor '{}', which the index says is there",
                escape(placement.file),
                escape(placement.name)),
            placement.offset);
      }
      shard->used.insert(placement.name);
      root.items.emplace_back(placement.name, found->second);
    }
    warn_of_others();
    root.attributes = attributes_.take();
    std::ranges::copy(
        attributes_.warnings(),
        std::back_inserter(file_.warnings));
    if (!root.attributes.empty()) {
      root.kind = Dict::Kind::kOrderedDict;
    }
    file_.root = std::move(root);
    return std::move(file_);
  }

 private:
  struct Shard {
    std::map<std::string, Value> tensors = {};
    std::set<std::string> used = {};
  };

  Result<Shard*> open(const Placement& placement) {
    const auto known = shards_.find(placement.file);
    if (known != shards_.end()) {
      return &known->second;
    }
    const std::string path =
        parent_directory(input_.path) + "/" + placement.file;
    auto part = read_part(path);
    if (!part && part.error().code == ErrorCode::kNotFound) {
      return bad_index(
          ErrorCode::kNotFound,
          format(
              "the file '{}' of tensor '{}' is missing",
              escape(placement.file),
              escape(placement.name)),
          placement.offset);
    }
    LOCKSTEP_ASSIGN(Checkpoint read, in_file(std::move(part), path));
    return &add(placement.file, std::move(read));
  }

  Result<Checkpoint> read_part(const std::string& path) {
    LOCKSTEP_ASSIGN(
        const auto source,
        open_source(path, {.use_mmap = input_.options.use_mmap}, *input_.fs));
    std::vector<std::byte> scratch;
    LOCKSTEP_ASSIGN(
        const ByteSpan head,
        source->view(0, std::min<std::uint64_t>(source->size(), 512), scratch));
    LOCKSTEP_ASSIGN(
        const bool is_index,
        claims_sharded_index({.source = source, .head = head}));
    if (is_index) { // one cannot lead to another
      return bad_index(
          ErrorCode::kCorrupt,
          "this file of the index is not a checkpoint");
    }
    add_file(input_.options.limits, source->size());
    return input_.load_part(source, path, input_.options);
  }

  Shard& add(const std::string& name, Checkpoint part) {
    Shard& shard = shards_[name];
    file_.file_bytes += part.file_bytes;
    const auto append = [](auto& to, auto& from) {
      std::ranges::move(from, std::back_inserter(to));
    };
    append(file_.storages, part.storages);
    append(file_.warnings, part.warnings);
    append(file_.globals, part.globals);
    if (const Dict* dict = part.root.as_dict()) {
      for (const auto& [key, value] : dict->items) {
        if (key.as_string() != nullptr) {
          shard.tensors.emplace(*key.as_string(), value);
        }
      }
      attributes_.add(name, dict->attributes);
    }
    return shard;
  }

  void warn_of_others() {
    for (const auto& [name, shard] : shards_) {
      std::vector<std::string> others;
      for (const auto& [key, value] : shard.tensors) {
        if (!shard.used.contains(key)) {
          others.push_back(key);
        }
      }
      if (!others.empty()) {
        file_.warnings.push_back(
            {.name = "W_INDEX_UNUSED",
             .text = format(
                 "{} of {} in '{}' are not in the index and left out: {}",
                 others.size(),
                 counted(shard.tensors.size(), "tensor"),
                 escape(name),
                 some_names(others))});
      }
    }
    std::string whole = base_name(input_.path); // the model in one file
    whole.resize(
        whole.size() -
        (whole.ends_with(kIndexEnding) ? kIndexEnding.size() : 0));
    if (!shards_.contains(whole) && whole.ends_with(".safetensors") &&
        input_.fs->stat(parent_directory(input_.path) + "/" + whole)) {
      file_.warnings.push_back(
          {.name = "W_INDEX_UNUSED",
           .text =
               format("'{}' is not in the index and left out", escape(whole))});
    }
  }

  const ReadInput& input_;
  Checkpoint file_;
  std::map<std::string, Shard> shards_;
  internal::ShardAttributes attributes_;
};

Result<bool> has_weight_map(ByteSource& source) {
  if (source.size() > kMaxIndexBytes) {
    return false;
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(const ByteSpan bytes, source.view(0, source.size(), scratch));
  return as_text(bytes).find("\"weight_map\"") != std::string_view::npos;
}

Result<ReadInput> open_index(const ReadInput& folder, const std::string& name) {
  ReadInput index = folder;
  index.path = folder.path + "/" + name;
  LOCKSTEP_ASSIGN(
      index.source,
      open_source(
          index.path,
          {.use_mmap = folder.options.use_mmap},
          *folder.fs));
  return index;
}

// The indices in a folder, by their names: "model.safetensors.index.json".
Result<std::vector<std::string>> indices_in(const ReadInput& folder) {
  std::vector<std::string> found;
  if (folder.fs == nullptr) {
    return found;
  }
  LOCKSTEP_ASSIGN(const auto names, folder.fs->list(folder.path));
  for (const std::string& name : names) {
    if (!name.ends_with(kIndexEnding)) {
      continue;
    }
    const auto index = open_index(folder, name);
    if (!index) {
      continue; // a folder of that name, for example
    }
    LOCKSTEP_ASSIGN(const bool has_map, has_weight_map(*index->source));
    if (has_map) {
      found.push_back(name);
    }
  }
  return found;
}

// One that cannot be read names no file.
std::vector<FolderFacts::Index> read_indices(const ReadInput& folder) {
  std::vector<FolderFacts::Index> indices;
  const auto names = indices_in(folder);
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    FolderFacts::Index index{.name = (*names)[i]};
    const auto text = read_text(*folder.fs, folder.path + "/" + index.name);
    const auto placements = text ? parse_index(*text)
                                 : Result<std::vector<Placement>>(text.error());
    for (std::size_t p = 0; placements && p < placements->size(); ++p) {
      index.files.insert((*placements)[p].file);
    }
    indices.push_back(std::move(index));
  }
  return indices;
}

// Of the same model in two formats, transformers reads the safetensors.
Result<std::string> choose_index(const std::vector<std::string>& names) {
  std::vector<std::string> safe = names;
  std::erase_if(safe, [](const std::string& name) {
    return !name.ends_with(".safetensors" + std::string(kIndexEnding));
  });
  if (names.size() == 1 || safe.size() == 1) {
    return names.size() == 1 ? names.front() : safe.front();
  }
  Error error = bad_index(
      ErrorCode::kInvalidArgument,
      "the folder has several indices: " + some_names(names));
  error.hint = "name one of them";
  return error;
}

Result<Checkpoint> read_index_in_folder(const ReadInput& input) {
  LOCKSTEP_ASSIGN(const auto names, indices_in(input));
  LOCKSTEP_ASSIGN(const std::string name, choose_index(names));
  LOCKSTEP_ASSIGN(const ReadInput index, open_index(input, name));
  return in_file(read_sharded_index(index), index.path);
}

} // namespace

Result<bool> claims_sharded_index(const ReadInput& input) {
  if (input.source == nullptr) {
    LOCKSTEP_ASSIGN(const auto names, indices_in(input));
    return !names.empty();
  }
  const std::string_view head = as_text(input.head);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') {
    return false;
  }
  return has_weight_map(*input.source);
}

std::optional<ShardNumber> shard_number(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kDigits = 5;
  const auto number = [name](std::size_t at) {
    const std::string_view text =
        name.substr(std::min(at, name.size()), kDigits);
    return text.size() == kDigits ? parse_number<std::uint32_t>(text)
                                  : std::nullopt;
  };
  const std::size_t at = name.rfind(kOf);
  if (at == std::string_view::npos || at < kDigits) {
    return std::nullopt;
  }
  const auto first = number(at - kDigits);
  const auto of = number(at + kOf.size());
  return first && of ? std::optional(ShardNumber{.number = *first, .of = *of})
                     : std::nullopt;
}

std::optional<Warning>
warn_of_shard(const std::string& path, FileSystem& fs, FolderFacts& facts) {
  const std::string own = base_name(path);
  if (!shard_number(own)) {
    return std::nullopt;
  }
  const ReadInput folder{.path = parent_directory(path), .fs = &fs};
  const auto& indices =
      facts.indices(folder.path, [&folder] { return read_indices(folder); });
  for (const FolderFacts::Index& index : indices) {
    if (index.files.size() > 1 && index.files.contains(own)) {
      return Warning{
          .name = "W_SHARD",
          .text = format(
              "this is one of the {} files of '{}': name that, or the folder, "
              "for the whole model",
              index.files.size(),
              escape(index.name))};
    }
  }
  return std::nullopt;
}

Result<Checkpoint> read_sharded_index(const ReadInput& input) {
  if (input.source == nullptr) {
    return read_index_in_folder(input);
  }
  if (input.fs == nullptr) {
    return bad_index(
        ErrorCode::kInvalidArgument,
        "an index without a folder; its files cannot be found");
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      input.source->view(0, input.source->size(), scratch));
  const std::string_view text = as_text(bytes);
  LOCKSTEP_ASSIGN(const auto placements, parse_index(text));
  return ShardedReader(input).run(placements);
}

} // namespace lockstep::ckpt
