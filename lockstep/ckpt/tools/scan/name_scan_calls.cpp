// SPDX-License-Identifier: BSD-3-Clause
//
// What the scan knows of the value of a call.
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt::internal {

// NOLINTNEXTLINE(clang-diagnostic-shadow): of another file of the batch
using Kind = Sketch::Kind;

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
  // How protocols 0 and 1 make an instance: (class, base, state).
  const bool is_remade = text_of(taken[0]) == "copy_reg._reconstructor" ||
                         text_of(taken[0]) == "copyreg._reconstructor";
  return is_remade && taken[1].kind == Kind::kNames
             ? instance_of({.kind = Kind::kName, .index = taken[1].index})
             : instance_of(taken[0]);
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
