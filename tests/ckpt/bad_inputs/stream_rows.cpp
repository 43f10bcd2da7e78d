// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 57 to 59: legacy streams and tar files, all of them in
// testdata/corrupt; tests/oracle/make_legacy.py and make_tar.py make them.
#include "tests/ckpt/bad_inputs/bad_input.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

struct File {
  int row = 0;
  std::string name = {};
  std::string detail = {};
  std::string says = {};
  std::optional<std::uint64_t> offset = {};
};

BadInput row_of(const File& file, const std::string& ending) {
  return {
      .row = file.row,
      .name = file.name,
      .bytes = testdata("corrupt/" + file.name + ending),
      .detail = file.detail,
      .says = {file.says},
      .offset = file.offset};
}

const std::vector<File>& legacy_files() {
  static const std::vector<File> files{
      {57, "legacy_magic", "E_LEGACY_MAGIC", "not the magic number", 0},
      {57, "legacy_keys_more", "E_LEGACY_KEYS", "'6', is in no tensor", 0x131},
      {57,
       "legacy_keys_fewer",
       "E_LEGACY_KEYS",
       "lacks '5' of tensor 'w'; PyTorch would show uninitialised memory",
       0x10D},
      {57, "legacy_keys_twice", "E_LEGACY_KEYS", "was listed before", 0x131},
      {57, "legacy_keys_ints", "E_LEGACY_KEYS", "key 0", 0x112},
      {57, "legacy_numel", "E_LEGACY_NUMEL", "storage 0 of tensor 'w'", 0x113},
      {57, "legacy_numel_negative", "E_LEGACY_NUMEL", "got -1", 0x113},
      {57,
       "legacy_short",
       "E_LEGACY_SHORT",
       "expected 16 bytes, got 15",
       0x113},
      {57, "legacy_no_blob", "E_LEGACY_SHORT", "got 0", 0x113},
      {57, "legacy_cut_pickle", "E_TRUNCATED", "GLOBAL", 0x90},
      {57, "legacy_magic_cut", "E_TRUNCATED", "got 4", 2},
      {57, "legacy_conflict", "E_STORAGE_CONFLICT", "storage '5'", 0xF8},
      {58, "legacy_view_past", "E_VIEW_BOUNDS", "offset 2 and 3 elements"},
      {58, "legacy_view_negative", "E_VIEW_BOUNDS", "offset -1"},
      {58, "legacy_view_small", "E_VIEW_BOUNDS", "at most 8 bytes, got 16"},
  };
  return files;
}

const std::vector<File>& tar_files() {
  static const std::vector<File> files{
      {59, "tar_link", "E_TAR", "a symbolic link", 0x1400},
      {59, "tar_hardlink", "E_TAR", "a hard link", 0x1400},
      {59, "tar_device", "E_TAR", "a character device", 0x1400},
      {59, "tar_fifo", "E_TAR", "a FIFO", 0x1400},
      {59, "tar_sparse", "E_TAR", "a sparse file", 0x1400},
      {59, "tar_pax_sparse", "E_TAR", "'GNU.sparse.major'", 0x1200},
      {59,
       "tar_outside",
       "E_TAR",
       "'../../x' points outside the archive",
       0x2400},
      {59,
       "tar_absolute",
       "E_TAR",
       "'/etc/x' points outside the archive",
       0x2400},
      {59, "tar_size_lies", "E_TAR", "at most 9728 bytes, got 8589934591", 0},
      {59, "tar_size_text", "E_TAR", "got no number", 0},
      {59, "tar_size_binary", "E_TAR", "got no number", 0},
      {59, "tar_checksum", "E_TAR", "wrong header checksum", 0},
      {59, "tar_cut", "E_TAR", "header is truncated", 0x400},
      {59, "tar_twice", "E_TAR", "appears twice", 0x1000},
      {59, "tar_storage_cut", "E_TAR", "expected 24 bytes, got 4"},
      {59, "tar_storage_huge", "E_OVERFLOW", "4611686018427387904 elements"},
      {59, "tar_storage_missing", "E_TAR", "storage 2, which is missing"},
      {59, "tar_tensor_past", "E_VIEW_BOUNDS", "at most 24 bytes, got 32"},
      {59, "tar_tensor_rank", "E_RANK", "1073741824 dimensions"},
      {59, "tar_count_lies", "E_PICKLE", "record tensors"},
      {59, "tar_view_past", "E_VIEW_BOUNDS", "record storages"},
      {59, "tar_id_unknown", "E_TAR", "number '99'"},
  };
  return files;
}

} // namespace

std::vector<BadInput> stream_rows() {
  std::vector<BadInput> rows{
      {.row = 57,
       .name = "legacy_version",
       .bytes = testdata("corrupt/legacy_version.pt"),
       .detail = "E_LEGACY_VERSION",
       .code = ErrorCode::kUnsupported,
       .says = {"expected protocol version 1001, got 1002"},
       .offset = 0xF}};
  for (const File& file : legacy_files()) {
    rows.push_back(row_of(file, ".pt"));
  }
  for (const File& file : tar_files()) {
    rows.push_back(row_of(file, ".pth"));
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
