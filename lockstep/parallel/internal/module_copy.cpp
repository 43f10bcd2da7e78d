// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/module_copy.h"

#include <optional>
#include <set>
#include <string>
#include <typeinfo>

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/module_children.h"

namespace lockstep::parallel {
namespace {

using Module = torch::nn::Module;

constexpr const char* kCopyOp = "parallel.replicate";

std::shared_ptr<Module> call(
    const ModuleFactory& factory,
    const Module& master) {
  auto made = factory();
  const Module* const module = made.get();
  if (module == nullptr || typeid(*module) != typeid(master)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kCopyOp,
         .message = format(
             "the factory returned {}, expected a {}",
             made == nullptr ? "no module" : "a " + made->name(),
             master.name())});
  }
  if (made.get() == &master) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kCopyOp,
         .message = "the factory returned the module itself, expected another",
         .hint = format(
             "make one in each call: .factory = [] {{ return "
             "std::make_shared<{}>(...); }}",
             master.name())});
  }
  return made;
}

[[noreturn]] void raise_no_copy(const Module& master, const c10::Error& why) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = kCopyOp,
       .message = format(
           "{} cannot be cloned: {}",
           master.name(),
           why.what_without_backtrace()),
       .hint = format(
           "make it by make_module<{}>(...); or pass .factory = [] {{ return "
           "std::make_shared<{}>(...); }} with the arguments that made the "
           "module: if it was changed since, by replace_module or options, the "
           "factory makes the same changes before it returns",
           master.name(),
           master.name())});
}

void warn_of_changes(const Module& master) {
  TORCH_WARN(format(
      "members of {} were changed after make_module made it. Replicas are made "
      "by the same arguments and do not have the change: give it to the "
      "constructor, keep it in a registered buffer, or pass a .factory that "
      "makes it, too",
      master.name()));
}

// Of a class that says that it can be copied.
void warn_of_construction(const Module& master, const c10::Error& reason) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): looks, no more
  if (is_cloneable(const_cast<Module&>(master))) {
    TORCH_WARN(format(
        "{}. Replicas of {} are constructed anew; a plain member that was "
        "changed since is as the constructor leaves it: pass .factory if there "
        "are any",
        reason.what_without_backtrace(),
        master.name()));
  }
}

} // namespace

// A factory may return the same module in each call, or give all the same
// child.
void check_apart(
    const Module& copy,
    const std::vector<std::shared_ptr<Module>>& others) {
  std::set<const Module*> known;
  for (const auto& other : others) {
    for (const auto& module : other->modules()) {
      known.insert(module.get());
    }
  }
  const auto check = [&known](const std::string& path, const Module& module) {
    if (known.contains(&module)) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "parallel.replicate",
           .message = format(
               "two calls of the factory gave the same {}{}",
               module.name(),
               path.empty() ? "" : ", '" + path + "'"),
           .hint = "make another one in each call"});
    }
  };
  check("", copy);
  for (const auto& child : copy.named_modules("", /*include_self=*/false)) {
    check(child.key(), *child.value());
  }
}

void warn_of_shared(const ModuleCopy& copy) {
  if (!copy.shared.empty()) {
    TORCH_WARN(format(
        "the module was given {}, and its replicas call the same object: what "
        "its forward() keeps between passes (a state, a cache, a counter) is "
        "one for all replicas, and they run one after the other. To let them "
        "run at the same time, make it in reset(), or pass a .factory that "
        "makes the module whole",
        lockstep::join(copy.shared, ", ")));
  }
}

void warn_of_unlike(const Module& master, const ModuleCopy& copy) {
  if (!copy.unlike.empty()) {
    TORCH_WARN(format(
        "members of {} hold tensors that are not registered ({}), and each "
        "replica makes others, with other values: it computes something else. "
        "Register them, as register_buffer(\"t\", t), or pass a .factory that "
        "gives them the module's values",
        master.name(),
        lockstep::join(copy.unlike, ", ")));
  }
}

ModuleCopy copy_module(
    const Module& master,
    c10::Device device,
    const ModuleFactory& factory,
    const ModuleFactory& default_factory) {
  if (factory) {
    return copy_made_by([&] { return call(factory, master); }, master);
  }
  try {
    ModuleCopy copy =
        copy_of(master, device.is_cpu() ? std::nullopt : std::optional(device));
    if (copy.lacks_changes) {
      warn_of_changes(master);
    }
    return copy;
  } catch (const c10::Error& e) {
    if (!default_factory) {
      raise_no_copy(master, e);
    }
    auto made = copy_constructed_by(
        [&] { return call(default_factory, master); },
        master);
    if (!made) {
      raise_no_copy(master, e);
    }
    warn_of_construction(master, e);
    return std::move(*made);
  }
}

} // namespace lockstep::parallel
