// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/serialization_id.h"

#include <functional>

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kDigits = 20;

std::uint64_t combine(std::uint64_t seed, std::uint64_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6) + (seed >> 2));
}

std::string padded(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  return std::string(kDigits - digits.size(), '0') + digits;
}

} // namespace

void SerializationId::add(
    std::string_view name,
    std::uint32_t crc,
    std::uint64_t size) {
  names_.emplace(name);
  if (size != 0) {
    content_ = combine(content_, crc);
  }
}

std::string SerializationId::text() const {
  std::uint64_t names = 0;
  for (const std::string& name : names_) {
    names = combine(names, std::hash<std::string>()(name));
  }
  return padded(names) + padded(content_);
}

} // namespace lockstep::ckpt
