// SPDX-License-Identifier: BSD-3-Clause
//
// Walking a value tree: children, tensors with dotted names, values at paths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {
class Budget;

/// Number of values directly below `value`: elements; keys and values of a
/// dict, then those of its attributes; args, state and items of an object.
std::size_t child_count(const Value& value);

/// What a child is to its parent: every place where a value can hold another.
enum class ChildSlot : std::uint8_t {
  /// Of a list or tuple.
  kElement,
  /// Of a set.
  kMember,
  /// Keys and values of a dict or of an object's items.
  kKey,
  kItem,
  /// Python attributes of a dict.
  kAttributeKey,
  kAttribute,
  /// Of an object.
  kArgs,
  kState,
  /// Of a tensor.
  kTensorAttributes,
  kQuantizer,
};

/// A child, and where it is. Ownership: the node's.
struct Child {
  ChildSlot slot = ChildSlot::kElement;
  /// Among the elements, items or attributes; 0 for the rest.
  std::size_t index = 0;
  const Value* value = nullptr;
};

/// The child at `index`, counted as above; `value` must have one.
Child child_of(const Value& value, std::size_t index);
const Value& child_at(const Value& value, std::size_t index);
Value& child_at(Value& value, std::size_t index);

/// Name of a dict key inside a dotted path: Python's `str(key)`.
std::string key_text(const Value& key);

/// Integers of a tuple, list or `Size`; nothing if one is no int, or a bool,
/// or if there are more than `most`, which are not looked at then.
std::optional<std::vector<std::int64_t>> integers_of(
    const Value& value,
    std::size_t most = std::numeric_limits<std::size_t>::max());

/// True if `value` is a whole `torch.nn.Module`: an object whose state is a
/// dict with `_modules`.
bool is_module(const Value& value);

/// The attributes of an object of a TorchScript program, else null.
const Dict* script_attributes(const Value& value);

/// What a module registers, in the order of its state_dict.
enum class MemberKind : std::uint8_t { kParameter, kBuffer, kModule };
/// Where a module's state holds them, in the order of MemberKind.
inline constexpr std::array<std::string_view, 3> kMemberParts{
    "_parameters",
    "_buffers",
    "_modules"};
using MemberVisitor = std::function<
    Status(MemberKind kind, const Value& key, const Value& value)>;

/// Values that `for_each_member` looks at, also those it leaves out. Who may
/// reach one state many times bounds the sum.
std::uint64_t member_cost(const Value& state);

/// Visits what state_dict shows of a module with this `state`: parameters,
/// persistent buffers, then children; None is left out. Errors: what `visit`
/// returned.
Status for_each_member(const Value& state, const MemberVisitor& visit);

/// Levels of values that recursion over a tree goes down: what 8 MiB of stack
/// hold, also with sanitizers.
inline constexpr std::uint64_t kMaxTreeDepth = 2000;

/// Bytes of a name that count as one more visit of a walk, so that the names
/// of all visits together stay small enough to be kept.
inline constexpr std::uint64_t kVisitBytes = 64;

/// What may come again for each value that a walk sees for the first time.
inline constexpr std::uint64_t kRepeatsPerVisit = 4;

/// How far a walk goes, and for whom.
struct WalkBounds {
  std::uint64_t max_depth = kMaxTreeDepth;
  /// A shared value counts each time it is reached, as often as its name has
  /// kVisitBytes; a module counts with all that its state holds.
  std::uint64_t max_visits = 20'000'000;
  /// Of those, how many may come again: below a value that was entered before,
  /// or for a long name. `kRepeatsPerVisit` more for each of the others.
  std::uint64_t max_repeats = 1ULL << 17;
  /// Operation that errors name.
  std::string_view op = "ckpt.read";
  /// Counts all walks over a file (`Checkpoint::budget`).
  Budget* budget = nullptr;
};
/// For trees that are written: more names fit no file.
inline constexpr WalkBounds kWriteBounds{
    .max_visits = 4'000'000,
    .op = "ckpt.save"};

/// A step down: the key of a dict as text, or the index of an element.
using PathStep = std::variant<std::string, std::int64_t>;
std::string step_text(const PathStep& step);

/// Goes down a tree by names, depth first in file order. A derived class says
/// what to do with each value: look at it, go on below it, or both.
///   Status visit(const Value& value) override {
///     return value.as_tensor() ? add(name(), value) : enter(value);
///   }
class ValueWalk {
 public:
  explicit ValueWalk(const WalkBounds& bounds = {}) : bounds_(bounds) {}
  ValueWalk(const ValueWalk&) = delete;
  ValueWalk& operator=(const ValueWalk&) = delete;

  /// Visits `value` under the path so far: the root, to begin with. Errors:
  /// those of `visit`; kUnsafe (E_DEPTH, E_LIMIT) beyond the bounds.
  Status walk(const Value& value);

 protected:
  ~ValueWalk() = default;

  [[nodiscard]] std::uint64_t visits() const noexcept {
    return visits_;
  }

  virtual Status visit(const Value& value) = 0;

  /// Visits what has a name in `value`: items of a dict; elements of a list or
  /// tuple; what state_dict shows of a module; of another object its state,
  /// under the same name, and its items.
  Status enter(const Value& value);
  /// Visits a value one step down.
  Status below(std::string_view key, const Value& value);
  Status below(std::int64_t index, const Value& value);
  /// Counts what a derived class looked at by other means.
  Status count(std::uint64_t visits);

  /// Path of the value that is visited, joined by dots: "state_dict.fc.weight".
  [[nodiscard]] const std::string& name() const noexcept {
    return name_;
  }
  [[nodiscard]] std::vector<PathStep> path() const;
  /// Steps of the path.
  [[nodiscard]] std::size_t path_size() const noexcept {
    return path_.size();
  }
  /// True if the last step is the key `key` of a dict.
  [[nodiscard]] bool is_at_key(std::string_view key) const;

 private:
  // A step of the path: its text is a part of the name.
  struct Step {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::optional<std::int64_t> index = {};
  };

  Status enter_items(const std::vector<Item>& items);
  Status below_key(const Value& key, const Value& value);
  Status
  down(std::string_view text, std::optional<std::int64_t> index, const Value&);
  Status repeat(std::uint64_t visits);
  [[nodiscard]] Error too_deep() const;
  [[nodiscard]] Error too_many(std::uint64_t got, std::uint64_t most) const;
  [[nodiscard]] Error refuse(const char* detail, std::string message) const;

  WalkBounds bounds_;
  std::uint64_t depth_ = 0;
  std::uint64_t visits_ = 0;
  std::uint64_t repeats_ = 0;
  // Values on the path that were entered before.
  std::uint64_t again_ = 0;
  // What was entered and has several owners.
  std::unordered_set<const void*> shared_;
  std::string name_;
  std::vector<Step> path_;
};

/// Looks at each node of trees once, however often it is shared, a parent
/// before its children, without recursion. What has no address of its own, such
/// as a number, is not a node.
class NodeWalk {
 public:
  /// Called for a node; true to go on below it.
  using Visitor = std::function<bool(const Value& node)>;
  /// The same, and may change the node.
  using Changer = std::function<bool(Value& node)>;

  void run(const Value& root, const Visitor& visit);
  void run(Value& root, const Changer& change);
  /// Leaves a node out from now on.
  void leave_out(const Value& node) {
    seen_.insert(node.address());
  }

 private:
  template <class V>
  void run_nodes(V& root, const std::function<bool(V& node)>& visit);

  std::unordered_set<const void*> seen_;
};

/// Copies trees, each node once, however often it is shared, children before
/// their parents. A derived class changes the copies.
class TreeCopy {
 public:
  TreeCopy(const TreeCopy&) = delete;
  TreeCopy& operator=(const TreeCopy&) = delete;

  /// Errors: those of `change`; kUnsafe (E_DEPTH) beyond kMaxTreeDepth.
  Result<Value> copy(const Value& value);

 protected:
  /// `op`: the operation that errors name.
  explicit TreeCopy(std::string_view op) : op_(op) {}
  ~TreeCopy() = default;

  /// What stands in the copy for a child; `copy` of it, unless overridden.
  virtual Result<Value> copy_child(const Child& child);
  /// Called for each copy, whose children are copies already.
  virtual Status change(Value& copy) = 0;
  /// The copy of the node with this address; null if none was made.
  [[nodiscard]] const Value* copy_of(const void* node) const;

 private:
  std::string_view op_;
  std::uint64_t depth_ = 0;
  std::unordered_map<const void*, Value> done_;
};

/// Called for each tensor with its name: "state_dict.fc.weight".
using TensorVisitor =
    std::function<void(const std::string& name, const Tensor& tensor)>;

/// Visits the tensors of a tree in file order. A module shows the names of
/// its state_dict, a sparse or nested tensor those of its parts ("w.indices",
/// "w.values"); other objects their state. A container or module reached twice
/// is visited twice, another object once.
///
/// Then come the tensors that no such name leads to, in the order of the tree,
/// under the names of the places that hold them: "buffer.<args>.0" for an
/// argument of a constructor or another call; "s.<set>.0" for an element of a
/// set; "d.<keys>.0" for (a part of) the first key; "d.<attributes>.ema" for an
/// attribute of a dict or tensor; "fc.<state>._buffers.mask" for what a module
/// holds beside its state_dict, unless it has a name already. A container is
/// visited once there. Parameters of quantization belong to their tensor.
/// Errors: kUnsafe (E_DEPTH); kUnsafe (E_LIMIT) beyond the bounds.
Status for_each_tensor(
    const Value& root,
    const TensorVisitor& visit,
    const WalkBounds& bounds = {});

/// Who is told of which tensors; null for those that nobody asks for.
struct TensorVisitors {
  /// Those with names of their own.
  const TensorVisitor* named = nullptr;
  /// Those in other places.
  const TensorVisitor* placed = nullptr;
  /// Those of modules beside their state_dict.
  const TensorVisitor* beside = nullptr;
  /// Sparse and other layouts of known shape: as tensors without a storage;
  /// with one without bytes if they have no parts, as on the device "meta".
  const TensorVisitor* wholes = nullptr;
  /// Set before a call of the first three, unless null: which entry of the
  /// root, a dict, the tensor lies below; SIZE_MAX for none.
  std::size_t* entry = nullptr;
};

/// The same, told apart; or those with names of their own only.
Status for_each_tensor(
    const Value& root,
    const TensorVisitors& visitors,
    const WalkBounds& bounds = {});
Status for_each_named_tensor(const Value& root, const TensorVisitor& visit);

/// Names of all others, or of those of modules beside their state_dict alone.
/// Errors: the same.
Result<std::vector<std::string>> unnamed_tensors(const Value& root);
Result<std::vector<std::string>> tensors_beside_state(const Value& root);

/// True if there is a tensor anywhere in `root`.
bool holds_tensor(const Value& root);

/// Name of the first tensor that views `storage`, "" if none does.
std::string first_tensor_of(const Value& root, const Storage* storage);

/// The value at `path`, its dotted name: "optimizer.param_groups.0.lr"; keys
/// may hold dots themselves. "" is `root` itself. Modules are entered by the
/// names of their state_dict, other objects by their state. Ownership: shared
/// with `root`. Errors: kNotFound, with the nearest names; as the next.
Result<Value> find_path(const Value& root, std::string_view path);

/// Errors: kInvalidArgument (E_AMBIGUOUS) if two values have that name.
Status check_unambiguous(const Value& root, std::string_view path);

/// The name of a value or module in `root` nearest to `path`, which nothing
/// has, or "". The entry that holds the weights may be missing from `path`.
std::string near_name(const Value& root, std::string_view path);

/// The tensors whose names begin with `prefix` and a dot, as a dict of the rest
/// of their names; null if there are none. Errors: kUnsafe (E_LIMIT).
Result<std::optional<Value>> find_below(
    const Value& root,
    std::string_view prefix);

// A tree as one level of named tensors, for formats that know no nesting.
//   auto flat = flatten(root);       // {"model": {"w": t}} -> "model.w"

/// A tensor and its dotted name, as the content digest names it.
struct FlatTensor {
  std::string name = {};
  std::shared_ptr<const Tensor> tensor = {};
};

/// A value without parts that is not a tensor: number, text, None, dtype.
struct FlatScalar {
  std::string name = {};
  Value value = {};
};

/// Name of an attribute of a state_dict: the versions of its modules, from
/// their paths ("" is the root, "fc") to {'version': n}.
inline constexpr std::string_view kStateMetadata = "_metadata";

/// That attribute of `weights`; null without one.
const Dict* state_metadata(const Dict& weights);

/// `_metadata` of a dict, and the dict's name. Ownership: the tree's.
struct FlatMetadata {
  std::string name = {};
  const Dict* metadata = nullptr;
};

/// An attribute of a dict, and the dict's name. Ownership: the tree's.
struct FlatAttribute {
  std::string dict = {};
  const Dict* owner = nullptr;
  const Item* item = nullptr;
};

/// Name of an attribute where lists name it: "model._metadata".
std::string attribute_name(const std::string& dict, const Value& key);

/// Those of all dicts that `flatten` goes through, in the order of the tree.
/// Errors: kUnsafe (E_DEPTH, E_LIMIT).
Result<std::vector<FlatAttribute>> attributes_in(const Value& root);

/// What `flatten` gives, in the order of the tree.
struct FlatState {
  std::vector<FlatTensor> tensors = {};
  std::vector<FlatScalar> scalars = {};
  std::vector<FlatMetadata> metadata = {};
  /// What the walk counted (WalkBounds).
  std::uint64_t visits = 0;
};

/// Collects tensors and scalars. Other attributes of an OrderedDict than
/// `_metadata` and empty containers are left out.
/// Errors: kUnsupported (E_NOT_TENSOR) for an object that is not a module, a
/// set, or a tensor without bytes; kInvalidArgument (E_SAME_NAME) if two values
/// get one name; kUnsafe (E_DEPTH, E_LIMIT). The message names the value.
Result<FlatState> flatten(const Value& root);

/// Refuses tensors that share bytes, and a tensor that repeats its own: a
/// format without views would store those bytes several times.
/// Errors: kInvalidArgument (E_SHARED_TENSOR) with the names and `hint`.
Status check_not_shared(const FlatState& flat, const std::string& hint);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
