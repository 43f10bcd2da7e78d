// SPDX-License-Identifier: BSD-3-Clause
//
// Objects of a DCP folder: what `.metadata` names is what PyTorch unpickles.
#include <gmock/gmock.h>

#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"
#include "lockstep/ckpt/scan.h"
#include "tests/ckpt/tools/scan/archives.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

const std::string kDataFile = "__0_0.distcp";
const std::string kRunsCode =
    "\x80\x02" + std::string("cos\nsystem\n(Vid\ntR.");
const std::string kElements(64, '\x01');

// An archive with elements that nobody unpickles, and one with a number.
struct DcpData {
  std::string tensor = test::zip_of(
      {{"a/data.pkl",
        "\x80\x02(U\x07storagectorch\nByteStorage\nU\x01"
        "0U\x03"
        "cpuK\x40tQ."},
       {"a/data/0", kElements + kRunsCode + kElements}});
  std::string object = test::zip_of({{"b/data.pkl", "\x80\x02K\x07."}});
};

DcpItem object_at(
    const std::string& name,
    std::uint64_t offset,
    std::uint64_t length,
    const std::string& file = kDataFile) {
  return {
      .name = name,
      .path = {PathStep(name)},
      .place = {.file = file, .offset = offset, .length = length}};
}

std::vector<ScanReport> scan_dcp(
    const std::string& metadata,
    const std::string& data,
    const ScanPathOptions& options = {}) {
  MemoryFs disk;
  EXPECT_TRUE(disk.create_directories("d"));
  for (const auto& [name, bytes] :
       {std::pair(std::string(".metadata"), metadata),
        std::pair(kDataFile, data)}) {
    auto file = disk.create("d/" + name, 0644);
    EXPECT_TRUE(file && (*file)->write(as_byte_span(bytes)));
  }
  const auto reports = scan_path("d", options, disk);
  EXPECT_TRUE(reports);
  return reports ? *reports : std::vector<ScanReport>();
}

TEST(ScanDcp, FindsAnObjectAmongElements) {
  const DcpData files;
  const std::string data = files.tensor + files.object;
  const std::size_t at = data.find(kRunsCode);
  ASSERT_NE(at, std::string::npos);
  const auto sound =
      object_at("epoch", files.tensor.size(), files.object.size());
  EXPECT_EQ(
      worst(scan_dcp(dcp_metadata_pickle({sound}), data)),
      Verdict::kClean);
  const auto reports = scan_dcp(
      dcp_metadata_pickle({sound, object_at("b", at, kRunsCode.size())}),
      data);
  EXPECT_EQ(worst(reports), Verdict::kFound);
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[1].path, format("d/{} at {:#x}", kDataFile, at));
  EXPECT_EQ(reports[1].findings.at(0).name, "os.system");
}

TEST(ScanDcp, SaysWhatItCannotFollow) {
  const DcpData files;
  const std::string data = files.tensor + files.object;
  const std::size_t begin = files.tensor.size();
  const std::size_t size = files.object.size();
  const DcpItem sound = object_at("a", begin, size);
  const auto verdict = [&](const DcpItem& item) {
    return worst(scan_dcp(dcp_metadata_pickle({sound, item}), data));
  };
  EXPECT_EQ(verdict(object_at("b", 0, begin)), Verdict::kClean);
  for (const DcpItem& item :
       {object_at("b", begin, size),
        object_at("b", begin + 1, 4),
        object_at("b", data.size(), 1),
        object_at("b", 0, 64),
        object_at("b", 0, 1, "other.distcp"),
        object_at("b", 0, 1, "../d/" + kDataFile)}) {
    EXPECT_EQ(verdict(item), Verdict::kUnreadable) << item.place.offset;
  }
  EXPECT_EQ(worst(scan_dcp("\x80\x02}.", data)), Verdict::kUnreadable);
  // Zeros behind the pickle, more than one may have.
  EXPECT_EQ(
      worst(scan_dcp(
          dcp_metadata_pickle({sound}) + std::string(1 << 20, '\0'),
          data,
          {.limits = {.max_pickle_bytes = 1 << 16}})),
      Verdict::kUnreadable);
}

} // namespace
} // namespace lockstep::ckpt
