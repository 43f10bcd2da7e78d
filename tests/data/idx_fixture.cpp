// SPDX-License-Identifier: BSD-3-Clause
#include "tests/data/idx_fixture.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>
#include <libdeflate.h>

#include "lockstep/base/strings.h"

namespace lockstep::test {

std::string idx(const std::vector<std::uint32_t>& sizes, std::string elements) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(size >> shift & 0xFF);
    }
  }
  return bytes + elements;
}

std::string gzip(const std::string& bytes) {
  const std::
      unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)>
          compressor(
              libdeflate_alloc_compressor(6),
              &libdeflate_free_compressor);
  std::string packed(
      libdeflate_gzip_compress_bound(compressor.get(), bytes.size()),
      '\0');
  packed.resize(libdeflate_gzip_compress(
      compressor.get(),
      bytes.data(),
      bytes.size(),
      packed.data(),
      packed.size()));
  return packed;
}

std::string packed(std::string_view name) {
  return format("{}.gz", name);
}

std::string image_pixels(std::uint32_t count) {
  std::string pixels;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t p = 0; p < 28 * 28; ++p) {
      pixels += static_cast<char>((7 * i + p) % 256);
    }
  }
  return pixels;
}

std::string label_values(std::uint32_t count) {
  std::string labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(i % 10);
  }
  return labels;
}

std::string flip(std::string bytes, std::size_t offset, char mask) {
  bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ mask);
  return bytes;
}

std::optional<Error> error_if_any(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  return std::nullopt;
}

Error error_of(const std::function<void()>& action) {
  const auto error = error_if_any(action);
  EXPECT_TRUE(error);
  return error.value_or(Error{});
}

std::string message_of(const std::function<void()>& action) {
  const auto error = error_if_any(action);
  return error ? error->message : "no error";
}

IdxFolder::IdxFolder() {
  write(
      packed(kTrainImages),
      gzip(idx({kCount, 28, 28}, image_pixels(kCount))));
  write(packed(kTrainLabels), gzip(idx({kCount}, label_values(kCount))));
}

void IdxFolder::write(const std::string& name, const std::string& bytes) const {
  const std::filesystem::path file = dir_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

void IdxFolder::remove(const std::string& name) const {
  std::filesystem::remove(dir_ / name);
}

} // namespace lockstep::test
