// SPDX-License-Identifier: BSD-3-Clause
//
// What the scan knows of the value of a call.
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt::internal {

using Kind = Sketch::Kind;

namespace {

// How protocols 0 and 1 make an instance: (class, base, state).
bool is_reconstructor(std::string_view name) {
  return name == "copy_reg._reconstructor" || name == "copyreg._reconstructor";
}

// Whether a call has arguments: all but an empty tuple.
bool has_values(std::span<const Sketch> arguments) {
  return std::ranges::any_of(arguments, [](const Sketch& sketch) {
    return sketch.kind != Kind::kShape || sketch.index != 0;
  });
}

} // namespace

Sketch NameScan::reduce(std::span<const Sketch> taken) {
  if (is_getattr(taken[0]) && is_member_of_enum(taken[1])) {
    --open_getattrs_;
  }
  if (taken[0].kind != Kind::kName) {
    return instance_of(taken[0]);
  }
  if (may_give_back(taken[0], taken[1])) {
    result_.has_changed_names = true; // under a second name, unseen
    return {};
  }
  if (text_of(taken[0]) == "numpy.dtype" && taken[1].kind == Kind::kTexts) {
    const auto type = wrapped_type(text_of(taken[1]));
    return type ? Sketch::of_row(Kind::kType, types_, type) : Sketch{};
  }
  return is_reconstructor(text_of(taken[0])) && taken[1].kind == Kind::kNames
             ? instance_of({.kind = Kind::kName, .index = taken[1].index})
             : instance_of(taken[0]);
}

// Joblib's class is there to make instances, each of which is built at once,
// and a storage to make tensors of. What else is done with them may make that
// class the class of any object, and change the type of the storage.
void NameScan::note_use(const Instruction& in, std::span<const Sketch> taken) {
  const Op op = in.info->op;
  const bool is_tuple = op == Op::kTuple || op == Op::kTuple1 ||
                        op == Op::kTuple2 || op == Op::kTuple3;
  const bool is_call = op == Op::kReduce || op == Op::kNewObj ||
                       op == Op::kNewObjEx || op == Op::kObj;
  const bool has_function =
      (is_call || is_tuple) && !taken.empty() && taken[0].kind == Kind::kName;
  const std::span<const Sketch> used = taken.subspan(has_function ? 1 : 0);
  const bool is_remade =
      has_function && op == Op::kReduce && is_reconstructor(text_of(taken[0]));
  // Arguments of the wrapper are part of its state.
  const bool has_arguments =
      is_call && has_function && holds_wrapper(taken[0]) && has_values(used);
  result_.has_changed_names =
      result_.has_changed_names || has_arguments ||
      (!is_remade && std::ranges::any_of(used, [this](const Sketch& sketch) {
        return holds_wrapper(sketch);
      }));
  result_.has_unknown_ids =
      result_.has_unknown_ids ||
      ((is_call || has_function) &&
       std::ranges::find(used, Kind::kStorages, &Sketch::kind) != used.end() &&
       !is_for_rebuilding(taken[0]));
}

bool NameScan::holds_wrapper(const Sketch& sketch) const {
  if (sketch.kind == Kind::kWrapper) {
    return decoder_ != nullptr; // else it may be a whole array
  }
  return (sketch.kind == Kind::kName || sketch.kind == Kind::kNames) &&
         is_array_wrapper(text_of(sketch));
}

bool NameScan::is_for_rebuilding(const Sketch& function) const {
  return function.kind == Kind::kName &&
         text_of(function).starts_with("torch._utils._rebuild_");
}

// True for a call whose value may be one of its arguments.
bool NameScan::may_give_back(const Sketch& function, const Sketch& args) const {
  const std::string_view name = text_of(function);
  if (name == "numpy.dtype") {
    return args.kind != Kind::kTexts && args.kind != Kind::kNames;
  }
  const bool is_scalar = name == "numpy.core.multiarray.scalar" ||
                         name == "numpy._core.multiarray.scalar";
  return is_scalar ? args.kind != Kind::kTypePair // one of type 'O'
                   : name.starts_with("torch.jit._pickle.");
}

// False where Python finds no module or name and stops.
bool NameScan::may_be_text(const Sketch& sketch) const {
  return sketch.kind == Kind::kText || sketch.kind == Kind::kOther ||
         (sketch.kind == Kind::kName &&
          !find_global(text_of(sketch)).is_harmless());
}

// An object of the class, which may be that of texts.
Sketch NameScan::new_object(const Sketch& type) {
  const Sketch made = instance_of(type);
  const bool is_known = type.kind == Kind::kName &&
                        !text_of(type).ends_with(".str") &&
                        !text_of(type).ends_with(".unicode");
  return made.kind == Kind::kOther && is_known ? Sketch{.kind = Kind::kNoText}
                                               : made;
}

bool NameScan::is_getattr(const Sketch& sketch) const {
  return sketch.kind == Kind::kName && text_of(sketch) == kGetattr;
}

bool NameScan::is_member_of_enum(const Sketch& args) const {
  if (args.kind != Kind::kMember) {
    return false;
  }
  const auto& parts = tuples_[args.index];
  return is_enum_member(format("{}.{}", text_of(parts[0]), text_of(parts[1])));
}

} // namespace lockstep::ckpt::internal
