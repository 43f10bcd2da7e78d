// SPDX-License-Identifier: BSD-3-Clause
//
// Small archives for tests of the scan, made in memory.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/crc32.h"

namespace lockstep::test {

/// A tar file of one member, without an end.
inline std::string tar_of(const std::string& name, const std::string& content) {
  constexpr std::size_t kBlock = 512;
  std::string header = name;
  header.resize(kBlock, '\0');
  header.replace(124, 11, format("{:011o}", content.size()));
  header.replace(148, 8, "        ");
  header.replace(156, 1, "0");
  header.replace(257, 5, "ustar");
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0U);
  header.replace(148, 6, format("{:06o}", sum));
  return header + content + std::string(kBlock - content.size() % kBlock, '\0');
}

/// A zip file of stored records.
inline std::string zip_of(
    const std::vector<std::pair<std::string, std::string>>& records) {
  const auto number = [](std::uint64_t value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) {
      bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    }
    return bytes;
  };
  std::string out;
  std::string directory;
  for (const auto& [name, content] : records) {
    const std::string fields = number(20, 2) + std::string(8, '\0') +
                               number(ckpt::crc32(as_byte_span(content)), 4) +
                               number(content.size(), 4) +
                               number(content.size(), 4) +
                               number(name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + fields + std::string(10, '\0') +
                 number(out.size(), 4) + name;
    out += "PK\x03\x04" + fields + name + content;
  }
  return out + directory + "PK\x05\x06" + std::string(4, '\0') +
         number(records.size(), 2) + number(records.size(), 2) +
         number(directory.size(), 4) + number(out.size(), 4) + number(0, 2);
}

} // namespace lockstep::test
