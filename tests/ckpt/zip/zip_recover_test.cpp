// SPDX-License-Identifier: BSD-3-Clause
//
// Records that are found without a directory; salvage_test and scan_test see
// whole files.
#include "lockstep/ckpt/zip/zip_recover.h"

#include <limits>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/crc32.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using std::string_literals::operator""s;

constexpr std::string_view kText = "abc";
const std::string kStoredBlock = "\1\3\0\xfc\xff"s + std::string(kText);

std::string local(const LocalHeader& header, const std::string& extra = "") {
  LocalHeader whole = header;
  whole.name_bytes = 3;
  whole.extra_bytes = static_cast<std::uint16_t>(extra.size());
  return to_bytes(whole) + "m/x" + extra;
}

template <class Descriptor>
std::string streamed(std::uint16_t method, const std::string& payload) {
  Descriptor descriptor{.crc = crc32(as_byte_span(kText))};
  descriptor.compressed_size =
      static_cast<decltype(descriptor.size)>(payload.size());
  descriptor.size = static_cast<decltype(descriptor.size)>(kText.size());
  return local({.flags = kDescriptorFlag, .method = method}) + payload +
         to_bytes(descriptor) + std::string(kStructBytes<LocalHeader>, '\0');
}

ZipReader reader_of(const std::string& bytes, const Limits& limits = {}) {
  const auto source = make_source(as_byte_span(bytes));
  auto found = recover_zip_records(*source, limits).value();
  return ZipReader::recovered(source, std::move(found.records), limits);
}

TEST(ZipRecover, ReadsWhatWasStreamed) {
  const std::string stored(kText);
  for (const std::string& bytes :
       {streamed<DataDescriptor>(kStored, stored),
        streamed<DataDescriptor64>(kStored, stored),
        streamed<DataDescriptor>(kDeflated, kStoredBlock),
        streamed<DataDescriptor64>(kDeflated, kStoredBlock)}) {
    const ZipReader zip = reader_of(bytes);
    const ZipRecord* record = zip.find("x");
    ASSERT_NE(record, nullptr);
    std::vector<std::byte> scratch;
    const auto content = zip.read_checked(*record, scratch);
    ASSERT_TRUE(content) << to_string(content.error());
    EXPECT_EQ(as_text(*content), kText);
  }
}

TEST(ZipRecover, LeavesOutWhatDeflateCannotGive) {
  std::string extra;
  append_le(extra, kZip64Tag);
  append_le(extra, std::uint16_t{8});
  append_le(extra, std::uint64_t{1} << 62);
  const std::string bytes =
      local(
          {.method = kDeflated,
           .compressed_size = static_cast<std::uint32_t>(kStoredBlock.size()),
           .size = kZip64Threshold},
          extra) +
      kStoredBlock;
  const Limits none{.max_ratio = std::numeric_limits<std::uint64_t>::max()};
  EXPECT_TRUE(reader_of(bytes, none).records().empty());
}

} // namespace
} // namespace lockstep::ckpt
