// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 9 to 23: archives that two readers would see differently, or that grow.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

std::string two_records(const std::string& first, const std::string& second) {
  ZipBytes zip;
  zip.add(first, "1");
  zip.add(second, "2");
  return zip.finish();
}

std::string with_data_lies(const EntryLies& lies) {
  return checkpoint(tensor_pickle(), {.data_lies = lies});
}

BadInput name_row(std::string name, const std::string& record) {
  return {
      .row = 21,
      .name = std::move(name),
      .bytes = two_records("a/x", record),
      .detail = "E_NAME"};
}

std::vector<BadInput> record_names() {
  return {
      {.row = 9,
       .name = "equal_names",
       .bytes = two_records("a/x", "a/x"),
       .detail = "E_DUP_RECORD",
       .says = {"'a/x' appears twice", "at 0", "at 34"},
       .offset = 34},
      {.row = 10,
       .name = "names_equal_but_for_case",
       .bytes = two_records("a/data.pkl", "a/DATA.PKL"),
       .detail = "E_DUP_CASEFOLD",
       .says = {"at 0", "at 41"},
       .offset = 41},
      name_row("absolute_name", "/a/y"),
      name_row("parent_name", "a/../y"),
      name_row("parent_at_end", "a/.."),
      name_row("windows_name", "a\\y"),
      name_row("nul_in_name", std::string("a/x\0y", 5)),
      name_row("name_of_5_kb", "a/" + std::string(5000, 'n')),
      {.row = 22,
       .name = "two_roots",
       .bytes = two_records("a/x", "b/x"),
       .detail = "E_ROOTS",
       .says = {"expected 'a/'"},
       .offset = 34},
      {.row = 23,
       .name = "no_root",
       .bytes = two_records("data.pkl", "version"),
       .detail = "E_ROOT",
       .says = {"'data.pkl'"},
       .offset = 0},
  };
}

BadInput encrypted(int flag) {
  return {
      .row = 13,
      .name = "flag_" + std::to_string(flag),
      .bytes = with_data_lies({.flags = static_cast<std::uint16_t>(flag)}),
      .detail = "E_ENCRYPTED",
      .code = ErrorCode::kUnsupported,
      .says = {"record a/data/0"}};
}

std::vector<BadInput> headers() {
  std::vector<BadInput> rows{
      {.row = 11,
       .name = "local_name",
       .bytes = with_data_lies({.local_name = "a/data/1"}),
       .detail = "E_LOCAL_MISMATCH",
       .says = {"name", "record a/data/0"}},
      {.row = 12,
       .name = "local_crc",
       .bytes = with_data_lies({.local_crc = 1}),
       .detail = "E_LOCAL_MISMATCH",
       .says = {"CRC", "got 1"}},
      {.row = 12,
       .name = "local_size",
       .bytes = with_data_lies({.size = 15, .packed_size = 15}),
       .detail = "E_LOCAL_MISMATCH",
       .says = {"expected 15, got 16"}},
      {.row = 14,
       .name = "method_12",
       .bytes = with_data_lies({.method = 12}),
       .detail = "E_METHOD",
       .code = ErrorCode::kUnsupported,
       .says = {"expected 0 or 8, got 12"}},
  };
  for (const int flag : {0x1, 0x20, 0x40, 0x2000}) {
    rows.push_back(encrypted(flag));
  }
  return rows;
}

// The payload of the first record holds a whole local header for the second.
std::string overlapping() {
  ZipBytes inner;
  inner.add("a/b", "xyz");
  ZipBytes zip;
  zip.add("a/a", inner.finish().substr(0, 36));
  zip.add("a/b", "xyz", {.header_offset = 33});
  return zip.finish();
}

// A zip64 field with a header offset that overflows when sizes are added.
std::string overflowing() {
  std::string extra;
  put_le<std::uint16_t>(extra, 1);
  put_le<std::uint16_t>(extra, 8);
  put_le<std::uint64_t>(extra, ~0ULL - 3);
  return with_data_lies({.header_offset = 0xFFFFFFFF, .extra = extra});
}

std::vector<BadInput> bounds() {
  return {
      {.row = 15,
       .name = "overlapping_records",
       .bytes = overlapping(),
       .detail = "E_OVERLAP",
       .says = {"[0, 69)", "[33, 69)"},
       .offset = 33},
      {.row = 16,
       .name = "offset_outside",
       .bytes = with_data_lies({.header_offset = 1U << 30}),
       .detail = "E_BOUNDS",
       .says = {"1073741824"}},
      {.row = 16,
       .name = "offset_overflows",
       .bytes = overflowing(),
       .detail = "E_BOUNDS"},
      {.row = 16,
       .name = "announced_zip64_is_missing",
       .bytes = with_data_lies({.header_offset = 0xFFFFFFFF}),
       .detail = "E_BOUNDS"},
      {.row = 16,
       .name = "directory_offset",
       .bytes = checkpoint(tensor_pickle(), {.end = {.directory_shift = 1}}),
       .detail = "E_BOUNDS"},
      {.row = 17,
       .name = "declares_2_gb",
       .bytes = with_data_lies({.size = 2'200'000'000, .method = 8}),
       .detail = "E_RATIO",
       .code = ErrorCode::kUnsafe,
       .says = {"16 bytes would expand to 2200000000"}},
      {.row = 18,
       .name = "deflate_bomb",
       .bytes = checkpoint(
           tensor_pickle(),
           {.data = std::string(522 << 10, '\0'),
            .data_lies = {.size = 512U << 20, .method = 8}}),
       .detail = "E_RATIO",
       .code = ErrorCode::kUnsafe,
       .says = {"would expand to 536870912"}},
  };
}

} // namespace

std::vector<BadInput> zip_rows() {
  std::vector<BadInput> rows;
  for (auto&& more : {record_names(), headers(), bounds()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
