// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/legacy/legacy.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {
namespace {

constexpr std::uint64_t kWriteBlockBytes = 1U << 18;
constexpr std::uint64_t kNumelBytes = 8;

Result<std::string> pickle_of(const Value& value) {
  LOCKSTEP_ASSIGN(PickledTree tree, write_pickle(value));
  return std::move(tree.pickle);
}

// Sizes of C types on the writer's machine; no reader looks at them.
Value machine_info() {
  return Value::dict(
      {{"protocol_version", kLegacyVersion},
       {"little_endian", true},
       {"type_sizes", Value::dict({{"short", 2}, {"int", 4}, {"long", 4}})}});
}

// Indices of storages in the order of their keys as text: 0, 1, 10, 2.
std::vector<std::size_t> sorted_keys(std::size_t count) {
  std::vector<std::string> keys(count);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    keys[i] = std::to_string(i);
    order[i] = i;
  }
  std::ranges::sort(order, [&keys](std::size_t a, std::size_t b) {
    return keys[a] < keys[b];
  });
  return order;
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes(kNumelBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xFF);
    number >>= 8;
  }
  return bytes;
}

Status write_blob(
    WritableFile& file,
    const Storage& storage,
    std::uint64_t element_bytes) {
  LOCKSTEP_TRY(
      file.write(as_byte_span(number_bytes(storage.nbytes / element_bytes))));
  std::vector<std::byte> scratch;
  std::uint64_t done = 0;
  while (done < storage.nbytes) {
    const std::uint64_t size =
        std::min(kWriteBlockBytes, storage.nbytes - done);
    LOCKSTEP_ASSIGN(
        const ByteSpan block,
        storage.source->view(done, size, scratch));
    LOCKSTEP_TRY(file.write(block));
    done += size;
  }
  return {};
}

// Everything before the bytes of the storages.
Result<std::string> pickles_of(
    const PickledTree& tree,
    const std::vector<std::size_t>& order) {
  List keys;
  for (const std::size_t index : order) {
    keys.items.emplace_back(std::to_string(index));
  }
  LOCKSTEP_ASSIGN(
      const std::string magic,
      pickle_of(BigInt{std::string(kLegacyMagic)}));
  LOCKSTEP_ASSIGN(const std::string version, pickle_of(kLegacyVersion));
  LOCKSTEP_ASSIGN(const std::string info, pickle_of(machine_info()));
  LOCKSTEP_ASSIGN(const std::string list, pickle_of(std::move(keys)));
  return magic + version + info + tree.pickle + list;
}

Status check_sources(const PickledTree& tree) {
  for (std::size_t i = 0; i < tree.storages.size(); ++i) {
    if (tree.storages[i]->nbytes != 0 && tree.storages[i]->source == nullptr) {
      return internal::save_error(
          ErrorCode::kInvalidArgument,
          "E_TENSOR",
          format("storage {} has no bytes", i));
    }
  }
  return {};
}

Status write_stream(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(
      const PickledTree tree,
      write_pickle(root, {.ids = StorageIds::kLegacy}));
  LOCKSTEP_TRY(check_sources(tree));
  const auto order = sorted_keys(tree.storages.size());
  LOCKSTEP_ASSIGN(const std::string pickles, pickles_of(tree, order));
  std::uint64_t bytes = pickles.size();
  for (const auto& storage : tree.storages) {
    bytes += kNumelBytes + storage->nbytes;
  }
  return write_file_atomically(
      fs,
      path,
      [&](WritableFile& file) -> Status {
        LOCKSTEP_TRY(file.write(as_byte_span(pickles)));
        for (const std::size_t i : order) {
          LOCKSTEP_TRY(
              write_blob(file, *tree.storages[i], tree.element_bytes[i]));
        }
        return {};
      },
      {.expected_bytes = bytes,
       .durable = options.durable,
       .replace = options.replace});
}

} // namespace

Status write_legacy(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  return in_file(write_stream(path, root, options, fs), path);
}

} // namespace lockstep::ckpt
