// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/unread_array.h"

#include <set>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

bool is_unread(const Value& value) {
  const Object* object = value.as_object();
  return object != nullptr && object->global == kUnreadArray &&
         object->args == nullptr && object->state == nullptr;
}

// An object is looked at once, as when tensors are visited.
class ArrayWalk final : public ValueWalk {
 public:
  using ValueWalk::ValueWalk;
  std::vector<std::string> names;

 private:
  Status visit(const Value& value) override {
    const Object* object = value.as_object();
    if (object != nullptr && !seen_.insert(object).second) {
      return {};
    }
    // In numpy.core before NumPy 2, in numpy._core since.
    if (object != nullptr && object->global.starts_with("numpy.") &&
        object->global.ends_with(".multiarray._reconstruct")) {
      names.push_back(name());
      return {};
    }
    return enter(value);
  }

  std::unordered_set<const Object*> seen_;
};

Error not_read(std::string_view what, std::string hint) {
  return save_error(
      ErrorCode::kUnsupported,
      "E_NOT_TENSOR",
      format(
          "{} is a NumPy array that is no tensor; it was not read, so it "
          "cannot be written",
          what),
      std::move(hint));
}

} // namespace

std::vector<std::string> unread_arrays(const Value& root) {
  std::vector<std::string> names;
  const Dict* dict = root.as_dict();
  for (std::size_t i = 0; dict != nullptr && i < dict->items.size(); ++i) {
    const auto& [key, value] = dict->items[i];
    if (is_unread(value)) {
      names.push_back(key_text(key));
    }
  }
  return names;
}

Result<std::vector<std::string>>
arrays_in(const Value& a, const Value& b, const WalkBounds& bounds) {
  std::set<std::string> names;
  for (const Value* side : {&a, &b}) {
    ArrayWalk walk(bounds);
    LOCKSTEP_TRY(walk.walk(*side));
    for (const auto& found : {walk.names, unread_arrays(*side)}) {
      names.insert(found.begin(), found.end());
    }
  }
  return std::vector(names.begin(), names.end());
}

Status check_arrays_read(const Value& root) {
  if (is_unread(root)) {
    return not_read("the value", "'lockstep ckpt pick' takes other names");
  }
  const auto names = unread_arrays(root);
  return names.empty() ? Status()
                       : Status(not_read(
                             format("'{}'", escape(names.front())),
                             "'lockstep ckpt drop' takes it out of a copy"));
}

} // namespace lockstep::ckpt::internal
