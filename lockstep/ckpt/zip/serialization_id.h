// SPDX-License-Identifier: BSD-3-Clause
//
// The record `.data/serialization_id`: 40 digits that PyTorch derives from the
// names and checksums of a file. Readers accept any value; ours equals
// PyTorch's when both are built with libstdc++.
//   SerializationId id;
//   id.add("data.pkl", crc, size);  id.text()
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace lockstep::ckpt {

/// The record's name, without root, and its size.
inline constexpr std::string_view kIdRecord = ".data/serialization_id";
inline constexpr std::uint64_t kIdBytes = 40;

/// Collects the records in the order they are written.
class SerializationId {
 public:
  /// Notes a record: its name without root, its CRC and size in bytes.
  void add(std::string_view name, std::uint32_t crc, std::uint64_t size);

  /// The id of what was added so far.
  [[nodiscard]] std::string text() const;

 private:
  // PyTorch hashes the names in this container's order of iteration.
  std::unordered_set<std::string> names_;
  std::uint64_t content_ = 0;
};

} // namespace lockstep::ckpt
