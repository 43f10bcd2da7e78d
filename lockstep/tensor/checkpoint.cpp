// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/checkpoint.h"

#include <unordered_set>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

// One builder for the whole file: shared storages stay shared.
struct CheckpointEntry::Convert {
  ValueBuilder& builder;
  std::string place = {};

  ckpt::Value operator()(const ckpt::Value& value) const {
    return value;
  }
  ckpt::Value operator()(const StateDict& weights) const {
    return here([&] { return builder.state_dict(weights); });
  }
  ckpt::Value operator()(const at::Tensor& tensor) const {
    return here([&] { return builder.tensor(tensor); });
  }
  ckpt::Value operator()(const Items& items) const {
    ckpt::Dict dict;
    std::unordered_set<std::string> keys; // 0 is not "0"
    for (const auto& [key, entry] : items) {
      const std::string name = key_text(key);
      if (!keys.insert(ckpt::to_text(key)).second) {
        raise(
            {.code = ErrorCode::kInvalidArgument,
             .op = "tensor.save",
             .message = format("two entries are called '{}'", escape(name))});
      }
      dict.items.emplace_back(key, below(name, entry));
    }
    return dict;
  }
  ckpt::Value operator()(const std::vector<CheckpointEntry>& entries) const {
    ckpt::List list;
    for (const CheckpointEntry& entry : entries) {
      list.items.push_back(below(std::to_string(list.items.size()), entry));
    }
    return list;
  }
  ckpt::Value operator()(Missing /*pointer*/) const {
    return here([]() -> ckpt::Value {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "tensor.save",
           .message = "the pointer to what is saved is null"});
    });
  }

 private:
  [[nodiscard]] ckpt::Value below(
      const std::string& key,
      const CheckpointEntry& entry) const {
    const std::string inside = place.empty() ? key : place + "." + key;
    return std::visit(Convert{builder, inside}, entry.data_);
  }

  // What fails says where.
  template <class F>
  ckpt::Value here(const F& convert) const {
    try {
      return convert();
    } catch (const Exception& failure) {
      Error error = failure.error();
      if (!place.empty()) {
        error.message = format("'{}': {}", escape(place), error.message);
      }
      raise(std::move(error));
    }
  }
};

ckpt::Value CheckpointEntry::value() const {
  ValueBuilder builder;
  return std::visit(Convert{builder}, data_);
}

Checkpoint
load(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  check_torch_version();
  ckpt::Checkpoint file = ckpt::load(
                              path,
                              {.use_mmap = options.use_mmap,
                               .check_crc = options.check_crc,
                               .byteorder = options.byteorder},
                              fs)
                              .value();
  for (const ckpt::Warning& warning : file.warnings) {
    TORCH_WARN(escape(path), ": ", to_string(warning));
  }
  map_locations(file.root, options.map_location);
  return Checkpoint(
      std::move(file.root),
      "",
      std::make_shared<const std::string>(path));
}

void save(
    const CheckpointEntry& content,
    const std::string& path,
    FileSystem& fs) {
  check_torch_version();
  ckpt::save(path, content.value(), {}, fs).value();
}

} // namespace lockstep
