// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/formats/torchscript/script_tree.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

class ScriptWalk final : public ValueWalk {
 public:
  ScriptWalk() : ValueWalk(kWriteBounds) {}

  Result<Value> run(const Value& program) {
    LOCKSTEP_TRY(walk(program));
    return Value(std::move(weights_));
  }

 private:
  Status visit(const Value& value) override {
    if (const Tensor* tensor = value.as_tensor()) {
      Tensor bare = *tensor;
      bare.requires_grad = false; // as state_dict gives it
      bare.is_parameter = false;
      weights_.items.emplace_back(name(), std::move(bare));
      return {};
    }
    if (layout_tensor(value)) {
      weights_.items.emplace_back(name(), value);
      return {};
    }
    return enter(value);
  }

  Dict weights_{.kind = Dict::Kind::kOrderedDict};
};

} // namespace

std::string_view script_class(const Value& value) {
  const bool is_program =
      script_attributes(value) != nullptr &&
      script_container(value.as_object()->global) == ScriptContainer::kNone;
  return is_program ? std::string_view(value.as_object()->global)
                    : std::string_view();
}

Result<Value> script_weights(const Value& program) {
  return ScriptWalk().run(program);
}

} // namespace lockstep::ckpt
