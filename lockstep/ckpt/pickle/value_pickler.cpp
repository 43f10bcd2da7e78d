// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/value_pickler.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/text_codec.h"

namespace lockstep::ckpt::internal {
namespace {

// Python's own limit of recursion, and ours for reading.
constexpr std::size_t kMaxPickleDepth = 1000;
constexpr std::size_t kBatch = 1000;
constexpr std::size_t kMaxLongBytes = 255;

// What the safe loader takes as a bare name: all it takes at all.
bool is_name(std::string_view name) {
  return find_global(name).is_safe();
}

} // namespace

Status ValuePickler::write(const Value& value) {
  if (path_.size() > kMaxPickleDepth) {
    return refuse(
        format("the value is nested deeper than {} levels", kMaxPickleDepth));
  }
  // An object that comes again is a reference, as in Python's pickler.
  return value.visit([this](const auto& part) {
    // A bool, an int and a float have no identity.
    constexpr bool kIsNumber =
        std::is_scalar_v<std::remove_cvref_t<decltype(part)>>;
    return !kIsNumber && out_.get(&part) ? Status() : save(part);
  });
}

PickledTree ValuePickler::finish() && {
  return {
      .pickle = std::move(out_).finish(),
      .storages = std::move(storages_),
      .keys = std::move(keys_),
      .element_bytes = std::move(element_bytes_)};
}

Status ValuePickler::save(None /*value*/) {
  out_.op(Op::kNone);
  return {};
}

Status ValuePickler::save(bool value) {
  out_.boolean(value);
  return {};
}

Status ValuePickler::save(std::int64_t value) {
  out_.integer(value);
  return {};
}

Status ValuePickler::save(const BigInt& value) {
  if (value.bytes.size() > kMaxLongBytes) {
    return refuse(
        format("an integer of {} bytes is too long", value.bytes.size()));
  }
  out_.big_integer(value.bytes);
  return {};
}

Status ValuePickler::save(double value) {
  out_.real(value);
  return {};
}

Status ValuePickler::save(const std::string& value) {
  LOCKSTEP_TRY(check_text(value));
  out_.shared_text(value);
  return {};
}

Status ValuePickler::save(const Bytes& value) {
  const std::string text = latin1_to_utf8(value.data);
  LOCKSTEP_TRY(check_text(text));
  out_.global("_codecs.encode");
  out_.fresh_text(text);
  out_.literal("latin1");
  out_.tuple(2);
  out_.op(Op::kReduce);
  out_.put(&value);
  return {};
}

Status ValuePickler::save(const Complex& value) {
  out_.global("builtins.complex");
  out_.real(value.real);
  out_.real(value.imag);
  out_.tuple(2);
  out_.op(Op::kReduce);
  out_.put(&value);
  return {};
}

Status ValuePickler::save(const Size& value) {
  out_.global("torch.Size");
  out_.integer_tuple(value.sizes);
  out_.tuple(1);
  out_.op(Op::kReduce);
  out_.put(&value);
  return {};
}

Status ValuePickler::save(const Device& value) {
  LOCKSTEP_TRY(check_text(value.type));
  out_.global("torch.device");
  out_.fresh_text(value.type);
  if (value.index >= 0) {
    out_.integer(value.index);
  }
  out_.tuple(value.index >= 0 ? 2 : 1);
  out_.op(Op::kReduce);
  out_.put(&value);
  return {};
}

Status ValuePickler::save(DTypeValue value) {
  out_.global(format("torch.{}", dtype_info(value.dtype).name));
  return {};
}

Status ValuePickler::save(const Storage& /*storage*/) {
  return refuse("a bare storage; expected an object of its class");
}

Status ValuePickler::save(const List& list) {
  out_.op(Op::kEmptyList);
  out_.put(&list);
  return list_items(list.items);
}

Status ValuePickler::save(const Tuple& tuple) {
  // Python gives the empty tuple no memo entry: there is only one.
  if (tuple.items.empty()) {
    out_.tuple(0);
    return {};
  }
  LOCKSTEP_TRY(tuple_items(tuple.items));
  if (out_.has(&tuple)) {
    return refuse("a tuple contains itself");
  }
  out_.tuple(tuple.items.size(), &tuple);
  return {};
}

Status ValuePickler::save(const Set& set) {
  for (const Value& member : set.items) {
    LOCKSTEP_TRY(check_key(member));
  }
  out_.global("builtins.set");
  out_.op(Op::kEmptyList);
  out_.put();
  LOCKSTEP_TRY(list_items(set.items));
  out_.tuple(1);
  out_.op(Op::kReduce);
  out_.put(&set);
  return {};
}

Status ValuePickler::save(const Dict& dict) {
  if (dict.kind != Dict::Kind::kOrderedDict && !dict.attributes.empty()) {
    return refuse("only an OrderedDict can carry attributes");
  }
  if (dict.kind == Dict::Kind::kOrderedDict) {
    out_.global("collections.OrderedDict");
    out_.tuple(0);
    out_.op(Op::kReduce);
    out_.put(&dict);
    LOCKSTEP_TRY(dict_items(dict.items, Feed::kIterator));
    if (!dict.attributes.empty()) {
      out_.op(Op::kEmptyDict);
      out_.put();
      LOCKSTEP_TRY(dict_items(dict.attributes, Feed::kDict));
      out_.op(Op::kBuild);
    }
    return {};
  }
  const bool is_counter = dict.kind == Dict::Kind::kCounter;
  if (is_counter) {
    out_.global("collections.Counter");
  }
  out_.op(Op::kEmptyDict);
  if (is_counter) {
    out_.put();
  } else {
    out_.put(&dict);
  }
  LOCKSTEP_TRY(dict_items(dict.items, Feed::kDict));
  if (is_counter) {
    out_.tuple(1);
    out_.op(Op::kReduce);
    out_.put(&dict);
  }
  return {};
}

Status ValuePickler::save(const Object& object) {
  const std::string& name = object.global;
  const bool is_call = object.args != nullptr && !object.args->is_none();
  const bool is_plain = object.state == nullptr && object.items.empty();
  if (is_plain && !is_call && is_name(name)) {
    out_.global(name);
    return {};
  }
  if (is_plain && is_call && name.ends_with("Storage")) {
    return storage_of(object);
  }
  if (name == kReferenceGlobal) {
    return refuse("a value that contains itself is not written");
  }
  if (options_.ids == StorageIds::kLegacy && name == names::kRebuildNested) {
    return refuse(
        "PyTorch cannot read a nested tensor from the legacy format",
        "write the format 'pt'");
  }
  const NameRow* const row = find_name(name);
  const Written written = row == nullptr ? Written::kNever : row->written;
  if (is_call && written == Written::kAsInstance && object.items.empty()) {
    return instance(object);
  }
  if (!is_plain || !is_call || written != Written::kAsCall) {
    return refuse(
        format(
            "'{}' is refused by torch.load(weights_only=True)",
            escape(name)),
        refused_.empty() ? refusal_hint(object) : "");
  }
  out_.global(name);
  LOCKSTEP_TRY(write(*object.args));
  out_.op(Op::kReduce);
  out_.put(&object);
  return {};
}

// An instance of a class: NEWOBJ, then its state.
Status ValuePickler::instance(const Object& object) {
  out_.global(object.global);
  LOCKSTEP_TRY(write(*object.args));
  out_.op(Op::kNewObj);
  out_.put(&object);
  if (object.state != nullptr) {
    LOCKSTEP_TRY(write(*object.state));
    out_.op(Op::kBuild);
  }
  return {};
}

Status ValuePickler::tuple_items(std::span<const Value> items) {
  if (items.size() > 3) {
    out_.op(Op::kMark);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    LOCKSTEP_TRY(element(items[i], i));
  }
  return {};
}

Status ValuePickler::list_items(std::span<const Value> items) {
  if (items.size() == 1) {
    LOCKSTEP_TRY(element(items[0], 0));
    out_.op(Op::kAppend);
    return {};
  }
  for (std::size_t begin = 0; begin < items.size(); begin += kBatch) {
    out_.op(Op::kMark);
    const std::size_t end = std::min(begin + kBatch, items.size());
    for (std::size_t i = begin; i < end; ++i) {
      LOCKSTEP_TRY(element(items[i], i));
    }
    out_.op(Op::kAppends);
  }
  return {};
}

Status ValuePickler::dict_items(std::span<const Item> items, Feed feed) {
  for (std::size_t begin = 0; begin < items.size(); begin += kBatch) {
    const auto batch =
        items.subspan(begin, std::min(kBatch, items.size() - begin));
    const bool alone =
        batch.size() == 1 && (feed == Feed::kIterator || items.size() == 1);
    if (!alone) {
      out_.op(Op::kMark);
    }
    for (const Item& entry : batch) {
      LOCKSTEP_TRY(item(entry));
    }
    out_.op(alone ? Op::kSetItem : Op::kSetItems);
  }
  const bool full = !items.empty() && items.size() % kBatch == 0;
  if (full && feed == Feed::kDict) {
    out_.op(Op::kMark);
    out_.op(Op::kSetItems);
  }
  return {};
}

Status ValuePickler::item(const Item& item) {
  LOCKSTEP_TRY(check_key(item.first));
  const std::size_t depth = path_.size();
  path_.push_back({.key = &item.first});
  LOCKSTEP_TRY(write(item.first));
  return noted(write(item.second), depth);
}

Status ValuePickler::element(const Value& value, std::size_t index) {
  const std::size_t depth = path_.size();
  path_.push_back({.index = index});
  return noted(write(value), depth);
}

Status ValuePickler::check_key(const Value& key) const {
  const bool unhashable = key.as_list() != nullptr ||
                          key.as_dict() != nullptr || key.type_name() == "set";
  return unhashable
             ? Status(refuse(format("a {} cannot be a key", key.type_name())))
             : Status();
}

Status ValuePickler::check_text(std::string_view text) const {
  if (text.size() > kMaxPickledText) {
    return refuse(format("a text of {} bytes is too long", text.size()));
  }
  return is_utf8_with_surrogates(text)
             ? Status()
             : refuse(format("'{}' is not UTF-8", escape(text)));
}

void ValuePickler::empty_ordered_dict() {
  out_.global("collections.OrderedDict");
  out_.tuple(0);
  out_.op(Op::kReduce);
  out_.put();
}

Error ValuePickler::refuse(std::string_view message, std::string hint) const {
  return save_error(
      ErrorCode::kUnsupported,
      "E_NOT_SAFE",
      format("{}: {}", where(), message),
      std::move(hint));
}

Error ValuePickler::invalid(std::string_view message) const {
  return save_error(
      ErrorCode::kInvalidArgument,
      "E_TENSOR",
      format("{}: {}", where(), message));
}

std::string ValuePickler::where() const {
  constexpr std::size_t kShown = 16;
  std::string text = "root";
  for (std::size_t i = 0; i < path_.size(); ++i) {
    if (i == kShown) {
      return text + "...";
    }
    const Step& step = path_[i];
    if (step.key == nullptr) {
      text += format("[{}]", step.index);
    } else if (const auto name = step.key->as_string()) {
      text += format("['{}']", escape(*name));
    } else if (const auto number = step.key->as_int()) {
      text += format("[{}]", *number);
    } else {
      text += format("[{}]", step.key->type_name());
    }
  }
  return text;
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

Result<PickledTree> write_pickle(
    const Value& root,
    const PickleOptions& options) {
  internal::ValuePickler pickler(options);
  LOCKSTEP_TRY(pickler.write(root));
  LOCKSTEP_TRY(pickler.problems());
  return std::move(pickler).finish();
}

} // namespace lockstep::ckpt
