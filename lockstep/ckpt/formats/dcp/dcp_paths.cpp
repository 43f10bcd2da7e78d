// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_paths.h"

#include <string>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt::internal {
namespace {

Error too_deep(std::size_t steps) {
  return {
      .code = ErrorCode::kUnsafe,
      .op = "ckpt.read",
      .message =
          format("a path has {} keys; expected at most {}", steps, kMaxDcpPath),
      .record = kDcpMetadataFile,
      .detail = "E_DEPTH"};
}

} // namespace

Result<std::optional<std::vector<PathStep>>>
read_dcp_path(const Value& value, std::size_t first, Budget& budget) {
  using Path = std::optional<std::vector<PathStep>>;
  const Tuple* tuple = value.as_tuple();
  if (tuple == nullptr || tuple->items.size() <= first) {
    return Path();
  }
  const std::size_t steps = tuple->items.size() - first;
  if (steps > kMaxDcpPath) {
    return too_deep(steps);
  }
  LOCKSTEP_TRY(budget.make(steps * sizeof(PathStep)));
  std::vector<PathStep> path;
  path.reserve(steps);
  for (std::size_t i = first; i < tuple->items.size(); ++i) {
    const std::string* key = tuple->items[i].as_string();
    const std::int64_t* index = tuple->items[i].as_int();
    if (key != nullptr) {
      LOCKSTEP_TRY(budget.make(key->size()));
      path.emplace_back(*key);
    } else if (index != nullptr && *index >= 0 && i > first) {
      path.emplace_back(*index);
    } else {
      return Path();
    }
  }
  return Path(std::move(path));
}

Result<std::vector<DcpEmpty>> read_dcp_empty(
    const Value& metadata,
    Budget& budget) {
  std::vector<DcpEmpty> found;
  const Value* value = metadata.find(kDcpEmpty);
  if (value == nullptr) {
    return found;
  }
  const List* list = value->as_list();
  const auto refused = [] {
    return corrupt_file(
        "E_DCP_METADATA",
        format("the list '{}' has an unknown form", kDcpEmpty),
        kDcpMetadataFile);
  };
  if (list == nullptr) {
    return refused();
  }
  LOCKSTEP_TRY(budget.make(list->items.size() * sizeof(DcpEmpty)));
  for (const Value& entry : list->items) {
    const Tuple* tuple = entry.as_tuple();
    const std::int64_t* position = tuple == nullptr || tuple->items.empty()
                                       ? nullptr
                                       : tuple->items[0].as_int();
    LOCKSTEP_ASSIGN(auto path, read_dcp_path(entry, 1, budget));
    if (position == nullptr || *position < 0 || !path) {
      return refused();
    }
    found.push_back(
        {.position = static_cast<std::size_t>(*position),
         .path = *std::move(path)});
  }
  return found;
}

} // namespace lockstep::ckpt::internal
