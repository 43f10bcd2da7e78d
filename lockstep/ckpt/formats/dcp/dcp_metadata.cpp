// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp_paths.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kModule = "torch.distributed.checkpoint.";

Error bad_metadata(std::string message) {
  return corrupt_file("E_DCP_METADATA", std::move(message), kDcpMetadataFile);
}

bool looks_up_members_only(const std::set<std::string>& lookups) {
  return !lookups.empty() && std::ranges::all_of(lookups, is_enum_member);
}

Status check_globals(const PickleResult& pickle) {
  for (const GlobalUse& use : pickle.globals) {
    const bool is_member =
        use.name == "builtins.getattr" && looks_up_members_only(pickle.lookups);
    if (!is_member && !find_global(use.name).is_harmless()) {
      return Error{
          .code = ErrorCode::kUnsafe,
          .op = "ckpt.read",
          .message = format(
              "name '{}' does not belong in the metadata of a checkpoint; "
              "PyTorch would import and call it",
              escape(use.name)),
          .hint = "do not load this folder in Python",
          .record = kDcpMetadataFile,
          .offset = use.offset,
          .detail = "E_UNSAFE_GLOBAL"};
    }
  }
  return {};
}

bool is_class(const Value& value, std::string_view class_name) {
  const Object* object = value.as_object();
  return object != nullptr && object->global.starts_with(kModule) &&
         std::string_view(object->global).substr(kModule.size()) == class_name;
}

// The state of an object of this class, null for anything else.
const Value* state_of(const Value& value, std::string_view class_name) {
  return is_class(value, class_name) ? value.as_object()->state.get() : nullptr;
}

const Dict* dict_at(const Value& state, std::string_view key) {
  const Value* value = state.find(key);
  return value == nullptr ? nullptr : value->as_dict();
}

using Sizes = std::optional<std::vector<std::int64_t>>;

// Non-negative integers.
Result<Sizes>
sizes_at(const Value& state, std::string_view key, Budget& budget) {
  LOCKSTEP_TRY(budget.step(child_count(state))); // what `find` goes over
  const Value* value = state.find(key);
  if (value == nullptr) {
    return Sizes();
  }
  // Many states may share one value, be it good or not.
  LOCKSTEP_TRY(budget.step(child_count(*value)));
  auto sizes = integers_of(*value);
  if (!sizes) {
    return Sizes();
  }
  LOCKSTEP_TRY(budget.make(sizes->size() * sizeof(std::int64_t)));
  const bool is_negative =
      std::ranges::any_of(*sizes, [](std::int64_t n) { return n < 0; });
  return is_negative ? Sizes() : std::move(sizes);
}

// A tensor's chunk is found by name and offsets, an object by name alone.
using PlaceKey = std::pair<std::string, Sizes>;
using Places = std::map<PlaceKey, DcpPlace>;

Result<DcpPlace>
read_place(const Value& info, const std::string& name, Budget& budget) {
  const Value* state = state_of(info, "filesystem._StorageInfo");
  LOCKSTEP_TRY(budget.step(state == nullptr ? 0 : child_count(*state)));
  const Value* file = state == nullptr ? nullptr : state->find("relative_path");
  const Value* offset = state == nullptr ? nullptr : state->find("offset");
  const Value* length = state == nullptr ? nullptr : state->find("length");
  if (file == nullptr || file->as_string() == nullptr || offset == nullptr ||
      offset->as_int() == nullptr || *offset->as_int() < 0 ||
      length == nullptr || length->as_int() == nullptr ||
      *length->as_int() < 0) {
    return bad_metadata(format(
        "the place of '{}' is not a file, an offset and a length",
        escape(name)));
  }
  const Value* transforms = state->find("transform_descriptors");
  const List* list = transforms == nullptr ? nullptr : transforms->as_list();
  const bool is_plain = transforms == nullptr || transforms->is_none() ||
                        (list != nullptr && list->items.empty());
  if (!is_plain) {
    const std::string* first = list == nullptr || list->items.empty()
                                   ? nullptr
                                   : list->items[0].as_string();
    return Error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.read",
        .message = format(
            "'{}' is stored with the extension '{}'",
            escape(name),
            first == nullptr ? "?" : escape(*first)),
        .hint = "load it in Python and save it without extensions",
        .record = kDcpMetadataFile,
        .detail = "E_DCP_TRANSFORM"};
  }
  LOCKSTEP_TRY(budget.make(file->as_string()->size()));
  return DcpPlace{
      .file = *file->as_string(),
      .offset = static_cast<std::uint64_t>(*offset->as_int()),
      .length = static_cast<std::uint64_t>(*length->as_int())};
}

Result<Places> read_places(const Value& metadata, Budget& budget) {
  const Dict* data = dict_at(metadata, "storage_data");
  if (data == nullptr) {
    return bad_metadata("the metadata has no 'storage_data'");
  }
  Places places;
  for (const auto& [index, info] : data->items) {
    const Value* state = state_of(index, "metadata.MetadataIndex");
    LOCKSTEP_TRY(budget.step(state == nullptr ? 0 : child_count(*state)));
    const Value* name = state == nullptr ? nullptr : state->find("fqn");
    if (name == nullptr || name->as_string() == nullptr) {
      return bad_metadata("a key of 'storage_data' is not a MetadataIndex");
    }
    LOCKSTEP_TRY(budget.make(name->as_string()->size()));
    LOCKSTEP_ASSIGN(
        DcpPlace place,
        read_place(info, *name->as_string(), budget));
    LOCKSTEP_ASSIGN(Sizes offsets, sizes_at(*state, "offset", budget));
    PlaceKey key(*name->as_string(), std::move(offsets));
    if (!places.try_emplace(std::move(key), std::move(place)).second) {
      return bad_metadata(
          format("'{}' is stored in two places", escape(*name->as_string())));
    }
  }
  return places;
}

class ItemReader {
 public:
  ItemReader(const Value& metadata, const Places& places, Budget& budget)
      : places_(places), budget_(budget) {
    const Dict* paths = dict_at(metadata, "planner_data");
    if (paths != nullptr) {
      for (const auto& [name, path] : paths->items) {
        if (name.as_string() != nullptr) {
          path_of_.emplace(*name.as_string(), &path);
        }
      }
    }
  }

  Result<DcpItem> read(const Value& key, const Value& value) {
    if (key.as_string() == nullptr) {
      return bad_metadata("a name in 'state_dict_metadata' is not text");
    }
    LOCKSTEP_TRY(budget_.make(key.as_string()->size()));
    DcpItem item{.name = *key.as_string()};
    LOCKSTEP_TRY(read_path(item));
    if (is_class(value, "metadata.BytesStorageMetadata")) {
      LOCKSTEP_ASSIGN(item.place, place_of(item.name, std::nullopt));
      return item;
    }
    const Value* state = state_of(value, "metadata.TensorStorageMetadata");
    if (state == nullptr) {
      return bad_metadata(
          format("'{}' is neither a tensor nor bytes", escape(item.name)));
    }
    item.is_tensor = true;
    LOCKSTEP_TRY(read_properties(item, *state));
    LOCKSTEP_TRY(read_chunks(item, *state));
    return item;
  }

 private:
  Result<DcpPlace> place_of(const std::string& name, const Sizes& offsets) {
    LOCKSTEP_TRY(budget_.make(name.size()));
    const auto found = places_.find(PlaceKey(name, offsets));
    if (found != places_.end()) {
      LOCKSTEP_TRY(budget_.make(found->second.file.size()));
      return found->second;
    }
    Error error = bad_metadata(
        format("the metadata does not say where '{}' is stored", escape(name)));
    error.detail = "E_NO_STORAGE";
    return error;
  }

  Status read_path(DcpItem& item) {
    const auto known = path_of_.find(item.name);
    if (known == path_of_.end()) {
      LOCKSTEP_TRY(budget_.make(item.name.size()));
      item.path.emplace_back(item.name);
      return {};
    }
    LOCKSTEP_ASSIGN(
        auto path,
        internal::read_dcp_path(*known->second, 0, budget_));
    if (!path) {
      return bad_metadata(
          format("the path of '{}' is not a tuple of keys", escape(item.name)));
    }
    item.path = *std::move(path);
    return {};
  }

  Status read_properties(DcpItem& item, const Value& state) {
    const Value* properties = state.find("properties");
    const Value* parts =
        properties == nullptr
            ? nullptr
            : state_of(*properties, "metadata.TensorProperties");
    const Tuple* tuple = parts == nullptr ? nullptr : parts->as_tuple();
    LOCKSTEP_ASSIGN(Sizes sizes, sizes_at(state, "size", budget_));
    if (tuple == nullptr || tuple->items.size() < 3 || !sizes) {
      return bad_metadata(format(
          "the properties of tensor '{}' have an unknown form",
          escape(item.name)));
    }
    const DTypeValue* dtype = tuple->items[0].as_dtype();
    if (dtype == nullptr) {
      Error error = bad_metadata(
          format("tensor '{}' has an unknown type", escape(item.name)));
      error.code = ErrorCode::kUnsupported;
      error.detail = "E_DTYPE";
      return error;
    }
    const bool* requires_grad = tuple->items[2].as_bool();
    item.dtype = dtype->dtype;
    item.requires_grad = requires_grad != nullptr && *requires_grad;
    item.sizes = *std::move(sizes);
    return {};
  }

  Status read_chunks(DcpItem& item, const Value& state) {
    const Value* value = state.find("chunks");
    const List* chunks = value == nullptr ? nullptr : value->as_list();
    if (chunks == nullptr) {
      return bad_metadata(
          format("tensor '{}' has no list of chunks", escape(item.name)));
    }
    LOCKSTEP_TRY(budget_.make(chunks->items.size() * sizeof(DcpChunk)));
    item.chunks.reserve(chunks->items.size());
    for (const Value& entry : chunks->items) {
      const Value* box = state_of(entry, "metadata.ChunkStorageMetadata");
      Sizes offsets;
      Sizes sizes;
      if (box != nullptr) {
        LOCKSTEP_ASSIGN(offsets, sizes_at(*box, "offsets", budget_));
        LOCKSTEP_ASSIGN(sizes, sizes_at(*box, "sizes", budget_));
      }
      if (!offsets || !sizes) {
        return bad_metadata(format(
            "a chunk of tensor '{}' has no offsets and sizes",
            escape(item.name)));
      }
      DcpChunk chunk;
      LOCKSTEP_ASSIGN(chunk.place, place_of(item.name, offsets));
      chunk.offsets = *std::move(offsets);
      chunk.sizes = *std::move(sizes);
      item.chunks.push_back(std::move(chunk));
    }
    return {};
  }

  const Places& places_;
  Budget& budget_;
  std::map<std::string_view, const Value*> path_of_;
};

} // namespace

namespace {

Result<DcpMetadata>
read_metadata(ByteSpan bytes, const Limits& limits, Budget& budget) {
  LOCKSTEP_ASSIGN(
      PickleResult pickle,
      in_record(read_pickle(bytes, nullptr, limits), kDcpMetadataFile));
  LOCKSTEP_TRY(check_globals(pickle));
  const Value* metadata = state_of(pickle.root, "metadata.Metadata");
  const Dict* items =
      metadata == nullptr ? nullptr : dict_at(*metadata, "state_dict_metadata");
  if (items == nullptr) {
    return bad_metadata("the file is not the metadata of a checkpoint");
  }
  LOCKSTEP_ASSIGN(const Places places, read_places(*metadata, budget));
  ItemReader reader(*metadata, places, budget);
  DcpMetadata result;
  LOCKSTEP_ASSIGN(result.empty, internal::read_dcp_empty(*metadata, budget));
  result.warnings = std::move(pickle.warnings);
  if (const std::uint64_t rest = bytes.size() - pickle.consumed; rest != 0) {
    result.warnings.push_back(
        {.name = "W_TRAILING",
         .text = format(
             "{} the pickle of '{}' at {:#x}",
             counted(rest, "byte follows", "bytes follow"),
             kDcpMetadataFile,
             pickle.consumed)});
  }
  result.items.reserve(items->items.size());
  for (const auto& [key, value] : items->items) {
    LOCKSTEP_ASSIGN(DcpItem item, reader.read(key, value));
    result.items.push_back(std::move(item));
  }
  result.globals = std::move(pickle.globals);
  for (GlobalUse& use : result.globals) {
    use.is_safe = true; // of the short list
  }
  return result;
}

} // namespace

Result<DcpMetadata> read_dcp_metadata(ByteSpan bytes, const Limits& limits) {
  const Limits counted = counting(limits, bytes.size());
  auto metadata = read_metadata(bytes, counted, *counted.budget);
  if (!metadata && metadata.error().detail == "E_LIMIT") {
    metadata.error().record = kDcpMetadataFile;
  }
  return metadata;
}

Result<DcpMetadata> read_dcp_metadata(
    ByteSource& source,
    const Limits& limits) {
  if (source.size() > limits.max_pickle_bytes) {
    return Error{
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.read",
        .message = format(
            "the metadata has {} bytes, more than the limit",
            source.size()),
        .record = kDcpMetadataFile,
        .detail = "E_LIMIT"};
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(const ByteSpan bytes, source.view(0, source.size(), scratch));
  return read_dcp_metadata(bytes, limits);
}

} // namespace lockstep::ckpt
