// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/new_names.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/dcp/dcp.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// An item and its value.
struct DcpLeaf {
  DcpItem item = {};
  Value value = {};
};

// What a tree becomes.
struct DcpPlan {
  std::vector<DcpLeaf> leaves = {};
  std::vector<DcpEmpty> empty = {};
};

bool is_plain_tensor(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  return tensor != nullptr && !is_quantized(tensor->dtype) &&
         (tensor->numel() == 0 || has_bytes(*tensor));
}

// Leaves in the order of the tree; those with `is_tensor` are strided tensors
// with bytes. A module gives the entries of its state_dict.
class LeafWalk final : public ValueWalk {
 public:
  LeafWalk()
      : ValueWalk(
            {.max_depth = kMaxDcpPath + 1,
             .max_visits = kWriteBounds.max_visits,
             .op = kWriteBounds.op}) {}

  Result<DcpPlan> run(const Value& root) {
    if (root.as_dict() == nullptr && !is_module(root)) {
      Error error = internal::save_error(
          ErrorCode::kUnsupported,
          "E_NOT_TENSOR",
          format(
              "a DCP folder holds a dict; got a value of type {}",
              root.type_name()));
      if (script_attributes(root) != nullptr) {
        error.hint = "safetensors holds the weights of a TorchScript program";
      }
      return error;
    }
    LOCKSTEP_TRY(walk(root));
    return std::move(plan_);
  }

  // After `run`: names of what has no place in an item.
  std::vector<std::string> take_attributes() {
    return std::move(attributes_);
  }
  std::vector<ValueChange> take_changes() {
    return changes_.take();
  }

 private:
  Status visit(const Value& value) override {
    if (is_module(value)) {
      return state_dict(value);
    }
    const Dict* dict = value.as_dict();
    if (dict != nullptr) {
      const std::uint64_t cost = 1 + name().size() / kVisitBytes;
      LOCKSTEP_TRY(count(dict->attributes.size() * cost));
      for (const auto& [key, attribute] : dict->attributes) {
        attributes_.push_back(attribute_name(name(), key));
      }
      note_keys(*dict);
    }
    if (dict != nullptr && dict->items.empty()) {
      return add_empty();
    }
    return is_entered(value, 0) ? enter(value) : add(value);
  }

  void note_keys(const Dict& dict) {
    const auto is_number = [](const Item& item) {
      const std::int64_t* number = item.first.as_int();
      return number != nullptr && *number >= 0;
    };
    const bool come_back =
        is_at_key("state") && std::ranges::all_of(dict.items, is_number);
    for (const auto& [key, value] : dict.items) {
      if (key.as_string() == nullptr && !come_back) {
        changes_.add(ChangeKind::kKey, [this, &key] {
          return attribute_name(name(), key);
        });
      }
    }
  }

  // PyTorch enters a list for tensors, dicts and lists that it would enter.
  bool is_entered(const Value& value, std::size_t depth) {
    if (value.as_dict() != nullptr || is_module(value)) {
      return true;
    }
    const List* list = value.as_list();
    if (list == nullptr || depth == kMaxDcpPath) {
      return false;
    }
    const auto [known, is_new] = lists_.emplace(list, false);
    if (is_new) {
      known->second =
          std::ranges::any_of(list->items, [this, depth](const Value& element) {
            return element.as_tensor() != nullptr ||
                   is_entered(element, depth + 1);
          });
    }
    return known->second;
  }

  Status state_dict(const Value& module) {
    LOCKSTEP_ASSIGN(const FlatState flat, flatten(module));
    LOCKSTEP_TRY(count(flat.visits));
    if (flat.tensors.empty()) {
      return add_empty();
    }
    for (const FlatTensor& entry : flat.tensors) {
      LOCKSTEP_TRY(below(entry.name, std::make_shared<Tensor>(*entry.tensor)));
    }
    return {};
  }

  Status add_empty() {
    LOCKSTEP_ASSIGN(const auto steps, counted_path());
    if (steps.empty()) {
      return {};
    }
    if (!paths_.insert(steps).second) {
      return same_name(dotted(steps));
    }
    changes_.add(ChangeKind::kEmptyInPython, [this] { return name(); });
    plan_.empty.push_back({.position = plan_.leaves.size(), .path = steps});
    return {};
  }

  // To be kept twice, as a name and as steps: counted before it is made.
  Result<std::vector<PathStep>> counted_path() {
    const std::size_t bytes =
        2 * (2 * name().size() + path_size() * sizeof(PathStep));
    LOCKSTEP_TRY(count(bytes / kVisitBytes));
    return path();
  }

  static Error same_name(const std::string& name) {
    return internal::save_error(
        ErrorCode::kInvalidArgument,
        "E_SAME_NAME",
        format("'{}' is the name of two values", escape(name)));
  }

  Status add(const Value& value) {
    DcpLeaf leaf{.value = value};
    LOCKSTEP_ASSIGN(leaf.item.path, counted_path());
    leaf.item.name = dotted(leaf.item.path);
    const bool is_new = names_.insert(leaf.item.name).second;
    if (!is_new || !paths_.insert(leaf.item.path).second) {
      return same_name(leaf.item.name);
    }
    if (is_plain_tensor(value)) {
      const Tensor& tensor = *value.as_tensor();
      changes_.add_tensor(tensor, [this] { return name(); });
      leaf.item.is_tensor = true;
      leaf.item.dtype = tensor.dtype;
      leaf.item.requires_grad = tensor.requires_grad;
      leaf.item.sizes = tensor.sizes;
      leaf.item.chunks.push_back(
          {.offsets = std::vector<std::int64_t>(tensor.sizes.size(), 0),
           .sizes = tensor.sizes});
    }
    plan_.leaves.push_back(std::move(leaf));
    return {};
  }

  // As PyTorch joins a path: with a dot after a first key that is empty, too.
  static std::string dotted(const std::vector<PathStep>& path) {
    std::vector<std::string> steps;
    std::ranges::transform(path, std::back_inserter(steps), step_text);
    return join(steps, ".");
  }

  DcpPlan plan_;
  std::vector<std::string> attributes_;
  ValueChanges changes_;
  // Of items. Dicts without entries have paths alone.
  std::set<std::string> names_;
  std::set<std::vector<PathStep>> paths_;
  // Whether a list is entered.
  std::map<const List*, bool> lists_;
};

// Top folder of an item, as PyTorch writes it to a stream.
constexpr const char* kItemRoot = "archive";

bool is_data_file(const std::string& name) {
  return name.starts_with("__") && name.ends_with(kDcpDataSuffix);
}

// "__0_0.distcp", or the first later one that does not exist.
std::string new_data_file(const std::vector<std::string>& names) {
  for (std::size_t n = 0;; ++n) {
    std::string name = format("__0_{}{}", n, kDcpDataSuffix);
    if (std::ranges::find(names, name) == names.end()) {
      return name;
    }
  }
}

// A row-major tensor of the same elements.
Tensor plain_tensor(const Tensor& tensor) {
  Tensor plain{.dtype = tensor.dtype, .sizes = tensor.sizes};
  plain.strides = row_major_strides(tensor.sizes);
  plain.storage = std::make_shared<Storage>(
      Storage{.nbytes = contiguous_bytes(tensor), .dtype = tensor.dtype});
  plain.storage->source = std::make_shared<internal::GatheredSource>(tensor);
  return plain;
}

Result<std::uint64_t> write_object(WritableFile& file, const Value& value) {
  LOCKSTEP_ASSIGN(PickledTree tree, write_pickle(value));
  return internal::write_archive(
      file,
      kItemRoot,
      internal::pt_records(std::move(tree)));
}

Status write_items(
    WritableFile& file,
    const std::string& name,
    std::vector<DcpLeaf>& leaves) {
  std::uint64_t position = 0;
  for (DcpLeaf& leaf : leaves) {
    const Tensor* tensor =
        leaf.item.is_tensor ? leaf.value.as_tensor() : nullptr;
    LOCKSTEP_ASSIGN(
        const std::uint64_t length,
        about(
            write_object(file, tensor ? plain_tensor(*tensor) : leaf.value),
            format("'{}'", escape(leaf.item.name))));
    DcpPlace& place =
        tensor != nullptr ? leaf.item.chunks[0].place : leaf.item.place;
    place = {.file = name, .offset = position, .length = length};
    position += length;
  }
  return {};
}

std::uint64_t tensor_bytes(const std::vector<DcpLeaf>& leaves) {
  std::uint64_t bytes = 0;
  for (const DcpLeaf& leaf : leaves) {
    if (leaf.item.is_tensor) {
      bytes += contiguous_bytes(*leaf.value.as_tensor());
    }
  }
  return bytes;
}

// Two who save at once would each remove the other's data. Null if the caller
// holds the folder.
Result<std::unique_ptr<PathLock>> lock_folder(
    const std::string& path,
    const WriteOptions& options,
    internal::NewNames& made,
    FileSystem& fs) {
  if (options.lock != nullptr) {
    return std::unique_ptr<PathLock>();
  }
  auto lock = fs.lock_directory(path);
  if (!lock) {
    made.forget(path);
  }
  return lock;
}

} // namespace

Result<std::vector<std::string>> lost_dcp_attributes(const Value& root) {
  LeafWalk walk;
  LOCKSTEP_TRY(walk.run(root));
  return walk.take_attributes();
}

Result<std::vector<ValueChange>> dcp_changes(const Value& root) {
  LeafWalk walk;
  LOCKSTEP_TRY(walk.run(root));
  return walk.take_changes();
}

Status write_dcp(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(DcpPlan plan, in_file(LeafWalk().run(root), path));
  const std::string metadata = path + "/" + kDcpMetadataFile;
  std::unique_ptr<PathLock> lock; // until `made` has removed what is left
  internal::NewNames made(fs, [&fs, &metadata] {
    const auto info = fs.stat(metadata);
    return info || info.error().code != ErrorCode::kNotFound;
  });
  made.add(path);
  LOCKSTEP_TRY(fs.create_directories(path));
  LOCKSTEP_ASSIGN(lock, lock_folder(path, options, made, fs));
  if (!options.replace && fs.stat(metadata)) {
    return errno_error("ckpt.save", metadata, EEXIST);
  }
  LOCKSTEP_ASSIGN(const auto names, fs.list(path));
  const std::string data = new_data_file(names);
  const std::string data_path = format("{}/{}", path, data);
  made.add(data_path);
  LOCKSTEP_TRY(write_file_atomically(
      fs,
      data_path,
      [&](WritableFile& file) { return write_items(file, data, plan.leaves); },
      {.expected_bytes = tensor_bytes(plan.leaves),
       .durable = options.durable,
       .replace = options.replace}));
  std::vector<DcpItem> items;
  items.reserve(plan.leaves.size());
  for (DcpLeaf& leaf : plan.leaves) {
    items.push_back(std::move(leaf.item));
  }
  LOCKSTEP_TRY(write_file_atomically(
      fs,
      metadata,
      dcp_metadata_pickle(items, plan.empty),
      {.durable = options.durable, .replace = options.replace}));
  for (const std::string& name : names) {
    if (!is_data_file(name)) {
      continue;
    }
    Status removed = fs.remove(format("{}/{}", path, name));
    // Python, which takes no lock, may have been faster.
    if (!removed && removed.error().code != ErrorCode::kNotFound) {
      return removed;
    }
  }
  return {};
}

} // namespace lockstep::ckpt
