// SPDX-License-Identifier: BSD-3-Clause
//
// Changes checkpoints: names of weights, entries, element types. Every function
// makes a new tree that shares what did not change with the one that comes in,
// which stays as it is.
//   auto edited = strip_prefix(file->root, {.prefix = "module."});
//   ckpt::save("bare.pth", edited->root);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

// Finds the model's weights in what a file holds: a bare state_dict, or a
// training checkpoint that keeps one under a key.
//   auto place = locate_weights(file.root);      // {"state_dict", ...}

/// Where the weights are.
struct WeightsPlace {
  /// Key at the top level, or a dotted one below it ("state.model"); empty if
  /// the top level is the weights.
  std::string key = {};
  /// A dict or what holds a whole model (`module_in`), or what else the top
  /// level is. Shared with the tree.
  Value value = {};
  /// False for averages, beside which the weights themselves may be.
  bool is_usual = true;
};

/// The first of the usual keys ("state_dict", "model_state_dict", "model",
/// "net", "module", "weights", "model_state", Composer's "state.model") that
/// holds a dict with tensors, nested ones too, or a whole model; else the top
/// level if tensors are entries of it; else the first of the averages
/// ("params_ema", "params", "ema", ...) that does; else the first usual key
/// that holds a dict; else the top level.
WeightsPlace locate_weights(const Value& root);

/// The same for those who change keys: only a dict will do. `key` names the
/// place instead of the usual keys, as `WeightsPlace::key` does; "" searches.
/// Errors: kNotFound (E_NO_KEY); kInvalidArgument (E_AMBIGUOUS) if two entries
/// have that name; kUnsupported (E_NO_WEIGHTS) for a whole model or a value
/// without keys.
Result<WeightsPlace> weights_to_edit(
    const Value& root,
    std::string_view key = {});

/// `root` with other weights at `place`. The tree of `root` is left as it is.
Value with_weights(const Value& root, const WeightsPlace& place, Value weights);

// What an edit of keys did, or would do: the table of --dry-run.

/// One key that changed.
struct KeyChange {
  /// Empty for a key that is new.
  std::string from = {};
  /// Empty for a key that is dropped.
  std::string to = {};

  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

/// All of them.
struct KeyReport {
  /// Key of the weights that were edited; empty for the top level.
  std::string weights_key = {};
  /// In file order.
  std::vector<KeyChange> changes = {};
  /// Keys whose values came from elsewhere, in file order.
  std::vector<std::string> replaced = {};
  /// Keys that stay as they are.
  std::uint64_t kept = 0;
  /// Entries of a second file that have no place in the result (`merge`).
  std::vector<std::string> left_out = {};
  /// What `strip_prefix` took off: "module.", "_orig_mod.module.".
  std::string stripped = {};
  /// A wrapper's prefix that all keys have afterwards, too: that of another
  /// wrapper, or the name of a layer. Else empty.
  std::string left_prefix = {};
};

/// A tree after an edit. Ownership: shares what did not change with the tree
/// it was made of, which is left as it was.
struct Edited {
  Value root = {};
  KeyReport report = {};
};

/// Lines `from -> to`, and `= key` for a replaced one, at most `max_lines` of
/// them; foreign text is escaped.
std::string to_text(const KeyReport& report, std::uint64_t max_lines);

/// "renamed 6 keys, replaced 1 key, kept 3 keys".
std::string counts_text(const KeyReport& report);

/// Lines on stacked prefixes: which were stripped, which is left. Mostly empty.
std::string prefixes_text(const KeyReport& report);

/// `weights_key`, `renamed` [{from, to}], `dropped`, `added`, `replaced`,
/// `kept`; `stripped` and `left_prefix` if there are any.
Json to_json(const KeyReport& report);

// Changes the names of weights: what `lockstep ckpt strip`, `prefix` and
// `rename` do. `_metadata` follows the keys; collisions are refused; tensors
// are shared with the tree that comes in, which stays as it is.
//   auto edited = strip_prefix(file.root, {.prefix = "module."});
//   ckpt::save("bare.pth", edited->root);

namespace internal {
class Regex;
} // namespace internal

/// How `strip_prefix` works.
struct StripOptions {
  /// Empty: the wrapper's prefix that all keys share, "module." (DataParallel
  /// and DistributedDataParallel), "_orig_mod." (torch.compile) or one in the
  /// other. None of them is taken twice.
  std::string prefix = {};
  /// Key of the weights; empty searches (`locate_weights`).
  std::string weights_key = {};
  /// Also strip where some keys lack the prefix; those stay.
  bool partial = false;
};

/// Removes a prefix once from the front of the keys that all share it, so that
/// a layer that is called `module` keeps its name.
/// Errors: kMismatch (E_NO_PREFIX) if no key, or not every key, has it;
/// kInvalidArgument (E_KEY_COLLISION, E_KEY_EMPTY); as `weights_to_edit`.
Result<Edited> strip_prefix(const Value& root, const StripOptions& options);

/// How `add_prefix` works.
struct PrefixOptions {
  std::string prefix = "module.";
  /// Key of the weights; empty searches.
  std::string weights_key = {};
};

/// Puts a prefix in front of every key. Errors: kInvalidArgument for an empty
/// prefix; as `weights_to_edit`.
Result<Edited> add_prefix(const Value& root, const PrefixOptions& options);

/// `s/REGEX/REPLACEMENT/[g]` with any separator; REGEX is as in Perl and
/// Python, the replacement takes `\1` to `\9` and `\0` (or `&`) for the match.
class RenameRule {
 public:
  /// Errors: kInvalidArgument (E_RENAME_RULE).
  static Result<RenameRule> parse(std::string_view text);

  /// The key after the rule. Errors: kUnsafe (E_LIMIT) for a key on which the
  /// match grows without end; kInvalidArgument for a replacement that is no
  /// UTF-8.
  [[nodiscard]] Result<std::string> apply(const std::string& key) const;

 private:
  RenameRule() = default;

  std::shared_ptr<const internal::Regex> regex_;
  std::string replacement_;
  bool is_global_ = false;
};

/// Applies a rule to every key; the paths of `_metadata` follow the keys of
/// their modules. Errors: as `RenameRule`; kInvalidArgument (E_KEY_COLLISION,
/// E_KEY_EMPTY); kMismatch (E_NO_MATCH) if no key matches.
Result<Edited> rename_keys(
    const Value& root,
    const RenameRule& rule,
    std::string_view weights_key = {});

// Takes entries out of a checkpoint, keeps only some, or joins two: what
// `lockstep ckpt pick`, `drop` and `merge` do. Tensors are shared with the
// trees that come in, which stay as they are.
//   auto weights = pick(file.root, {"state_dict"});
//   auto smaller = drop(file.root, {"optimizer"});

/// Keeps what `names` say. One name that is a value of the tree, as
/// "state_dict" or "optimizer.state.0", becomes the whole tree. Several entries
/// of a checkpoint ("epoch", "state_dict") stay a checkpoint. Otherwise each
/// name is a weight, or a module with all weights below it ("layer1" keeps
/// "layer1.0.conv1.weight"), and the dict of the weights with these is the
/// tree; `_metadata` follows.
/// Errors: kNotFound (E_NO_KEY); kInvalidArgument without names, and for a name
/// that two entries have (E_AMBIGUOUS).
Result<Edited> pick(const Value& root, std::span<const std::string> names);

/// Takes away what `names` say: entries of the tree by their dotted names
/// ("optimizer", "state_dict.fc.bias"), or weights and modules by theirs, also
/// with the key of the weights in front ("state_dict.fc").
/// Errors: kNotFound (E_NO_KEY); kInvalidArgument without names, and for a name
/// that two entries have (E_AMBIGUOUS).
Result<Edited> drop(const Value& root, std::span<const std::string> names);

/// How `merge` treats keys that both have.
struct MergeOptions {
  /// The second tree's value wins; otherwise a collision is an error.
  bool replace = false;
  /// Of the second tree the weights alone; its other entries are left out.
  bool weights_only = false;
};

/// The weights of both, in the order of `first`, then `second`; beside them
/// the other entries of both checkpoints. Those of `second` are left out, and
/// named in the report, where `first` has an entry of that name that is not to
/// be replaced, or is nothing but weights.
/// Errors: kInvalidArgument (E_KEY_COLLISION; E_AMBIGUOUS if both have a key
/// and one of them another that looks like it: 1 and '1'); as
/// `weights_to_edit`.
Result<Edited> merge(
    const Value& first,
    const Value& second,
    const MergeOptions& options = {});

/// The records of both that are no part of the value (`Checkpoint`), likewise;
/// of equal ones that of `first`. Errors: kInvalidArgument (E_KEY_COLLISION;
/// E_NAME for a name of `second` that cannot be written); those of reading.
Result<std::vector<ExtraRecord>> merge_records(
    const std::vector<ExtraRecord>& first,
    const std::vector<ExtraRecord>& second,
    const MergeOptions& options = {});

// The mean of the weights of several checkpoints of one model, as of the last
// epochs of a run: what `lockstep ckpt average` writes.
//   auto mean = average(std::array<NamedRoot, 2>{{{"a.pt", a}, {"b.pt", b}}});
//   ckpt::save("mean.pt", mean->weights);

/// A tree, and what messages call it.
struct NamedRoot {
  std::string name = {};
  Value root = {};
};

/// Ownership: shares what is no mean with the last tree.
struct Averaged {
  /// The weights alone; names, order and `_metadata` are the last tree's.
  Value weights = {};
  /// The last tree with these weights.
  Value root = {};
  /// Units: tensors.
  std::uint64_t averaged = 0;
  /// Tensors of integers, which are the last tree's: `num_batches_tracked`.
  std::vector<std::string> kept = {};
};

/// Sums in float64 in the order of `files`, divides and rounds to the tensors'
/// own type, as PyTorch does; lazy. Tensors that share memory in every file
/// share it. `weights_key` as in `weights_to_edit`. `max_expanded_bytes` bounds
/// what the means take beyond the storages of the last tree
/// (`Limits::max_expanded_bytes`).
/// Errors: kMismatch (E_NOT_ALIKE) with all names, shapes and types that do not
/// fit, and all views beyond that bound; kInvalidArgument for fewer than two;
/// as `weights_to_edit`.
Result<Averaged> average(
    std::span<const NamedRoot> files,
    std::string_view weights_key = {},
    std::uint64_t max_expanded_bytes = Limits().max_expanded_bytes);

// Changes the tensors of a checkpoint and nothing else: element type, device
// tag, views cut to their own bytes. Lazy: bytes are converted block by block
// while they are written.
//   auto half = convert_tensors(file.root, {.dtype = DType::kBFloat16});

/// What `convert_tensors` changes.
struct ConvertOptions {
  /// New element type of tensors of float64, float32, float16 and bfloat16, one
  /// of these four; other tensors stay, and so do the scales of quantized ones
  /// and the counters of an optimizer (`step`), which PyTorch keeps in float32:
  /// bfloat16 would count to 256. Typed storages and tensors on "meta" follow.
  /// Rounds to nearest even, as PyTorch.
  std::optional<DType> dtype = {};
  /// New device tag of all tensors ("cpu", "cuda:0"); empty keeps them.
  std::string map_location = {};
  /// Give tensors that see only a part of a storage one of their own, so that
  /// the rest is not written. Tensors that share memory this way part.
  bool clone_views = false;
  /// Units: bytes that those may take beyond what they view
  /// (`Limits::max_expanded_bytes`).
  std::uint64_t max_expanded_bytes = Limits().max_expanded_bytes;
};

/// One tensor that changed.
struct TensorChange {
  std::string name = {};
  /// "float32 cpu", with the bytes of its storage.
  std::string from = {};
  std::string to = {};
  /// Units: bytes of the storage.
  std::uint64_t from_bytes = 0;
  std::uint64_t to_bytes = 0;
  /// Of the new tensor.
  std::shared_ptr<const Storage> storage = {};
};

/// A tree with other tensors. Ownership: shares what did not change with the
/// tree it was made of, which is left as it was.
struct Converted {
  Value root = {};
  /// In file order; tensors reached by name.
  std::vector<TensorChange> changes = {};
  /// Names of floating-point tensors that are of another type than `dtype`.
  std::vector<std::string> kept = {};
};

/// Errors: kInvalidArgument for "meta", whose tensors have no bytes.
Status check_map_location(std::string_view location);

/// Errors: kInvalidArgument for another dtype; as `check_map_location`;
/// kUnsupported (E_MIXED_VIEWS) if
/// tensors of several types view one storage that is to change its type;
/// kUnsafe (E_LIMIT) for a tree that expands without end.
Result<Converted> convert_tensors(
    const Value& root,
    const ConvertOptions& options);

/// Names of the tensors in which a finite number was beyond the new type and
/// became infinite. Known once they have been read: after saving.
std::vector<std::string> overflowed(const Converted& converted);

// Arguments of a command line that scripts save as they are
// (`argparse.Namespace`): objects that the safe loader refuses, so that no file
// with one can be written.

/// A tree in which namespaces are dicts of their attributes:
/// `argparse.Namespace` and `types.SimpleNamespace` in dicts, lists, tuples and
/// each other. Errors: kUnsafe (E_DEPTH).
Result<Value> plain_namespaces(const Value& root);

// Writes an edited checkpoint in the format it had; the kernel copies the bytes
// of tensors.
//   auto lock = lock_for_edit("m.pt");
//   auto file = ckpt::load("m.pt", {.use_mmap = false});
//   auto edited = strip_prefix(file->root, {});
//   rewrite(
//       *file,
//       edited->root,
//       "m.pt",
//       {.archive_name = file->archive_name, .lock = lock->get()});

/// The name of the writer for the format of `file`: "pt" for "zip". `input` is
/// its path, for the message.
/// Errors: kUnsupported (E_NO_WRITER) for a format that is only read.
Result<std::string> writer_of(
    const Checkpoint& file,
    const std::string& input = {});

/// Keeps others from editing the file or folder `path`, also in this process:
/// for who reads it, changes it and takes its place, from before the first
/// until after the last. The new file has a lock of its own; a folder, into
/// which nobody else saves meanwhile, stays (`RewriteOptions::lock`). Null if
/// there is nothing; then reading says what is wrong. Where the file system
/// knows no locks nobody is kept away, and `PathLock::missing_lock` says so.
/// Errors: kIo (E_LOCKED, E_PERMISSION).
Result<std::unique_ptr<PathLock>> lock_for_edit(
    const std::string& path,
    FileSystem& fs = real_fs());

/// How the place of a file is taken; what is not said here, as `SaveOptions`.
struct RewriteOptions {
  std::string archive_name = {};
  bool durable = true;
  bool replace = true;
  std::uint64_t max_expanded_bytes = Limits().max_expanded_bytes;
  /// That of `lock_for_edit` for the output. Without it a folder is locked
  /// while it is written.
  const PathLock* lock = nullptr;
};

/// Saves `root`, a tree made of `file`, in the format of `file`, whose extra
/// records are carried over. `output` may be the file itself: a new one takes
/// its place. Storages that lie in an open zip checkpoint
/// (`LoadOptions::use_mmap` off) are copied by the kernel with the CRC stored
/// there: damage is not noticed now, and stays visible to those who check.
/// Errors: as `save`; kUnsupported (E_NO_WRITER) for a format that is only
/// read.
Status rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    const RewriteOptions& options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
#pragma GCC visibility pop
