// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/made_bytes.h"

#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

// A node of its own: its owners are counted in front of it, and the allocator
// keeps its size.
constexpr std::uint64_t kNodeBytes = 24;
// A key and a value, or an element with what a vector keeps free.
constexpr std::uint64_t kChildBytes = 2 * kValueBytes;

std::uint64_t text_bytes(const std::string& text) {
  return text.size() < sizeof(std::string) / 2 ? 0 : text.size();
}

struct OwnBytes {
  template <class T>
  std::uint64_t operator()(const T& /*node*/) const {
    return kNodeBytes + sizeof(T);
  }
  std::uint64_t operator()(const std::string& text) const {
    return kNodeBytes + sizeof(std::string) + text_bytes(text);
  }
  std::uint64_t operator()(const Bytes& bytes) const {
    return kNodeBytes + sizeof(bytes) + text_bytes(bytes.data);
  }
  std::uint64_t operator()(const Object& object) const {
    constexpr std::uint64_t kArgs = kNodeBytes + kValueBytes;
    return kNodeBytes + sizeof(object) + text_bytes(object.global) +
           (object.args ? kArgs : 0);
  }
  std::uint64_t operator()(const Tensor& tensor) const {
    return kNodeBytes + sizeof(tensor) +
           sizeof(std::int64_t) * (tensor.sizes.size() + tensor.strides.size());
  }
};

// What a copy of `value` takes; of tuples in it, too, which may be the
// arguments of a call inside a call.
std::uint64_t copied_bytes(const Value& value, int levels) {
  std::uint64_t bytes = value.text().size() + kChildBytes * child_count(value);
  if (const Bytes* data = value.as_bytes()) {
    bytes += data->data.size();
  }
  if (const Object* object = value.as_object()) {
    bytes += object->global.size();
  }
  if (const Size* size = value.as_size()) {
    bytes += sizeof(std::int64_t) * size->sizes.size();
  }
  if (const Tuple* tuple = levels == 0 ? nullptr : value.as_tuple()) {
    for (const Value& item : tuple->items) {
      bytes += copied_bytes(item, levels - 1);
    }
  }
  return bytes;
}

// Their argument is the value.
bool shares_arguments(const NameRow& row) {
  return row.call == call_restore_type_tag || row.call == call_typed_list;
}

} // namespace

std::uint64_t bytes_of_node(const Value& value) {
  return value.owners() == 1 ? value.visit(OwnBytes{}) : 0;
}

std::uint64_t bytes_of_call(std::string_view name, const Tuple& args) {
  const NameRow* const row = find_name(name);
  if (row == nullptr || row->call == nullptr || shares_arguments(*row)) {
    return 0;
  }
  std::uint64_t bytes = 0;
  for (const Value& argument : args.items) {
    bytes += copied_bytes(argument, 2);
  }
  return bytes;
}

std::uint64_t bytes_of_copy(const Value& value) {
  return copied_bytes(value, 1);
}

} // namespace lockstep::ckpt::internal
