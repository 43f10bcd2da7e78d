// SPDX-License-Identifier: BSD-3-Clause
//
// Walks a value tree and writes it through PickleOutput; for write_pickle.
// Containers are in value_pickler.cpp, tensors in tensor_pickler.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_output.h"

namespace lockstep::ckpt::internal {

class ValuePickler {
 public:
  explicit ValuePickler(PickleOptions options) : options_(std::move(options)) {}

  Status write(const Value& value);
  /// All values that are refused, in one error: what was written is of no use
  /// then.
  [[nodiscard]] Status problems() const;
  PickledTree finish() &&;

  // One overload per type of Value.
  Status save(None value);
  Status save(bool value);
  Status save(std::int64_t value);
  Status save(const BigInt& value);
  Status save(double value);
  Status save(const std::string& value);
  Status save(const Bytes& value);
  Status save(const Complex& value);
  Status save(const Size& value);
  Status save(const Device& value);
  Status save(DTypeValue value);
  Status save(const Storage& storage);
  Status save(const Tensor& tensor);
  Status save(const List& list);
  Status save(const Tuple& tuple);
  Status save(const Set& set);
  Status save(const Dict& dict);
  Status save(const Object& object);

 private:
  // How a dict is fed to the pickler decides the batches: Python writes an
  // empty batch after 1000 items of a dict, none after those of an iterator.
  enum class Feed { kDict, kIterator };

  Status list_items(std::span<const Value> items);
  Status dict_items(std::span<const Item> items, Feed feed);
  Status item(const Item& item);
  Status element(const Value& value, std::size_t index);
  // Goes on behind a value that is refused, to find all of them.
  Status noted(Status status, std::size_t depth);
  Status tuple_items(std::span<const Value> items);
  Status check_key(const Value& key) const;
  Status check_text(std::string_view text) const;
  Status check_tensor(const Tensor& tensor) const;
  Status check_location(const std::string& location) const;

  void empty_ordered_dict();
  // `torch._utils._rebuild_tensor_v2(...)`; arguments are the tuple alone.
  Status plain_tensor(const Tensor& tensor, bool requires_grad);
  Status tensor_arguments(const Tensor& tensor, bool requires_grad);
  Status parameter(const Tensor& tensor);
  Status tensor_with_attributes(const Tensor& tensor);
  Status persistent_id(
      const std::shared_ptr<Storage>& storage,
      std::string_view storage_class,
      std::uint64_t numel);
  Status storage_of(const Object& object);
  Status instance(const Object& object);
  Result<std::shared_ptr<const std::string>> storage_key(
      const std::shared_ptr<Storage>& storage,
      std::string_view storage_class);

  [[nodiscard]] Error refuse(std::string_view message, std::string hint = {})
      const;
  static std::string refusal_hint(const Object& object);
  [[nodiscard]] Error invalid(std::string_view message) const;
  [[nodiscard]] std::string where() const;

  struct Step {
    // Key of a dict, or null for an index.
    const Value* key = nullptr;
    std::size_t index = 0;
  };
  struct Known {
    std::string storage_class = {};
    // The key as Python's string object: one per storage.
    std::shared_ptr<const std::string> key = {};
  };

  PickleOptions options_;
  PickleOutput out_;
  std::vector<Step> path_;
  // The first of those that are refused, and how many there are.
  std::vector<Error> refused_;
  std::uint64_t refusals_ = 0;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::vector<std::string> keys_;
  std::uint64_t next_key_ = 0;
  std::vector<std::uint64_t> element_bytes_;
  std::unordered_map<const Storage*, Known> known_;
};

} // namespace lockstep::ckpt::internal
