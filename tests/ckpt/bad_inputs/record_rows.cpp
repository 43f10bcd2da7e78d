// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 19 to 29, 66, 70, 72: the records of a checkpoint.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/deflate.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

std::string with_more(std::string name, std::string payload) {
  return checkpoint(
      tensor_pickle(),
      {.more = {{std::move(name), std::move(payload)}}});
}

BadInput version(std::string name, std::string bytes, std::string says) {
  return {
      .row = 24,
      .name = std::move(name),
      .bytes = std::move(bytes),
      .detail = "E_VERSION",
      .says = {std::move(says), "1 to 10"}};
}

BadInput alignment(std::string name, const std::string& value) {
  return {
      .row = 70,
      .name = std::move(name),
      .bytes = with_more("a/.storage_alignment", value),
      .outcome = Outcome::kVerifyFails,
      .detail = "E_ALIGNMENT",
      .says = {"'" + value + "'"}};
}

std::vector<BadInput> checksums() {
  const EntryLies no_crc{.crc = 0};
  return {
      {.row = 19,
       .name = "flipped_weight",
       .bytes = testdata("corrupt/crc_data.pt"),
       .outcome = Outcome::kDamaged,
       .detail = "E_CRC",
       .says = {"expected cecee288, got 60a67319"}},
      {.row = 19,
       .name = "flipped_pickle",
       .bytes = testdata("corrupt/crc_pickle.pt"),
       .detail = "E_CRC"},
      {.row = 20,
       .name = "no_crc",
       .bytes = checkpoint(
           tensor_pickle(),
           {.data_lies = no_crc,
            .pickle_lies = no_crc,
            .version_lies = no_crc}),
       .outcome = Outcome::kWarned,
       .detail = "W_CRC_ABSENT"},
      {.row = 20,
       .name = "no_crc_in_data",
       .bytes = checkpoint(tensor_pickle(), {.data_lies = no_crc}),
       .outcome = Outcome::kWarned,
       .detail = "W_CRC_ABSENT"},
  };
}

std::vector<BadInput> storages() {
  return {
      {.row = 27,
       .name = "no_storage",
       .bytes = testdata("corrupt/no_storage.pt"),
       .detail = "E_NO_STORAGE",
       .says = {"tensor 'w0'", "record a/data/0"}},
      {.row = 28,
       .name = "short_storage",
       .bytes = checkpoint(tensor_pickle(), {.data = "0123456789"}),
       .detail = "E_STORAGE_SHORT",
       .says = {"expected 16 bytes, got 10", "record a/data/0"}},
      {.row = 29,
       .name = "long_storage",
       .bytes = checkpoint(tensor_pickle(), {.data = std::string(17, 'x')}),
       .outcome = Outcome::kWarned,
       .detail = "W_STORAGE_LONG",
       .says = {"17 bytes", "16"}},
      {.row = 72,
       .name = "deflated_storage",
       .bytes = checkpoint(
           tensor_pickle(),
           {.data = deflate("aaaaaaaaaaaaaaaa"),
            .data_lies =
                {.crc = crc32(as_byte_span("aaaaaaaaaaaaaaaa")),
                 .local_crc = crc32(as_byte_span("aaaaaaaaaaaaaaaa")),
                 .size = 16,
                 .method = 8}}),
       .outcome = Outcome::kWarned,
       .detail = "W_COMPRESSED"},
  };
}

std::string records_only(const std::vector<std::string>& names) {
  ZipBytes zip;
  for (const std::string& name : names) {
    zip.add("a/" + name, name == "byteorder" ? "little" : "3\n");
  }
  return zip.finish();
}

// An archive of PyTorch's that is not a checkpoint, by its records.
BadInput other_archive(
    std::string name,
    const std::vector<std::string>& records,
    std::string says) {
  return {
      .row = 26,
      .name = std::move(name),
      .bytes = records_only(records),
      .detail = "E_WRONG_FORMAT",
      .code = ErrorCode::kUnsupported,
      .says = {std::move(says)}};
}

} // namespace

std::vector<BadInput> record_rows() {
  std::vector<BadInput> rows{
      version("no_version", testdata("corrupt/no_version.pt"), "no record"),
      version("version_abc", testdata("corrupt/version_abc.pt"), "'abc'"),
      version("version_99", testdata("corrupt/version_99.pt"), "'99'"),
      {.row = 25,
       .name = "byteorder_middle",
       .bytes = with_more("a/byteorder", "middle"),
       .detail = "E_BYTEORDER",
       .says = {"'middle'", "record a/byteorder"}},
      {.row = 26,
       .name = "no_pickle",
       .bytes = testdata("corrupt/no_pickle.pt"),
       .detail = "E_NO_PICKLE",
       .says = {"3 other records", "data/0"}},
      {.row = 26,
       .name = "save_that_failed",
       .bytes = records_only({"version", "byteorder"}),
       .detail = "E_NO_PICKLE",
       .says = {"2 other records", "save again and read its error"}},
      other_archive(
          "exported_program",
          {"data/weights/weight_0", "models/model.json", ".data/version"},
          "ckpt convert IN.pt2 OUT.pt"),
      other_archive(
          "package",
          {".data/0.storage", ".data/extern_modules", ".data/version"},
          "torch.package.PackageImporter"),
      {.row = 66,
       .name = "hostile_code",
       .bytes = checkpoint(
           tensor_pickle(),
           {.more =
                {{"a/constants.pkl", Pickle().op(')').stop().bytes()},
                 {"a/code/__torch__/m.py", "import os\nos.system('id')\n"}}}),
       .outcome = Outcome::kRead,
       .says = {"TorchScript"}},
      alignment("alignment_0", "0"),
      alignment("alignment_negative", "-64"),
      alignment("alignment_text", "wide"),
      alignment("alignment_mixed", "64x"),
      alignment("alignment_huge", "99999999999999999999"),
  };
  for (auto&& more : {checksums(), storages()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
