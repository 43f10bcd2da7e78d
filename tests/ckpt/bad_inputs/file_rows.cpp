// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 1 to 8: files that are empty, cut, something else, or more than one.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

// A file that starts with `magic` and goes on with something.
std::string starting(const std::string& magic) {
  return magic + std::string(64, '\x11');
}

BadInput foreign(std::string name, std::string bytes, std::string says) {
  return {
      .row = 4,
      .name = std::move(name),
      .bytes = std::move(bytes),
      .detail = "E_WRONG_FORMAT",
      .code = ErrorCode::kUnsupported,
      .says = {std::move(says), "Hint: "}};
}

std::vector<BadInput> foreign_formats() {
  return {
      foreign("html", testdata("corrupt/html.pt"), "a web page"),
      foreign("html_lower", "<!doctype html>", "a web page"),
      foreign("html_bom", "\xef\xbb\xbf<html>", "a web page"),
      foreign("html_space", "\n\n  <html>", "a web page"),
      foreign("xml", "<?xml version=\"1.0\"?><Error>", "XML"),
      foreign("json", testdata("corrupt/json.pt"), "JSON"),
      foreign("gzip", testdata("corrupt/gzip.pt"), "gzip"),
      foreign("bzip2", starting("BZh9"), "bzip2"),
      foreign("xz", starting(std::string("\xfd") + "7zXZ"), "xz"),
      foreign("zstd", starting("\x28\xb5\x2f\xfd"), "zstd"),
      foreign("seven_zip", starting("7z\xbc\xaf\x27\x1c"), "7z"),
      foreign("rar", starting("Rar!\x1a\x07"), "RAR"),
      foreign("hdf5", testdata("corrupt/hdf5.pt"), "HDF5"),
      foreign("mobile", starting(std::string("0\0\0\0PTMF", 8)), "for phones"),
      foreign("tflite", starting(std::string("\34\0\0\0TFL3", 8)), "Lite"),
      foreign("gguf", starting("GGUF\3"), "GGUF"),
      foreign("onnx", starting("\x08\x07\x12\x07pytorch"), "ONNX"),
      foreign("torch7", starting({"\4\0\0\0\1\0\0\0\3\0\0\0V 1", 15}), "Lua"),
      foreign("torch7_table", starting({"\3\0\0\0\1\0\0\0", 8}), "Lua"),
      foreign("mxnet", starting({"\x12\1\0\0\0\0\0\0", 8}), "MXNet"),
      foreign("png", starting("\x89PNG\r\n\x1a\n"), "a picture"),
      foreign("jpeg", starting("\xff\xd8\xff\xe0"), "a picture"),
      foreign("pdf", "%PDF-1.7\n", "a PDF"),
      foreign("zeros", std::string(64, '\0'), "zeros"),
      foreign("text", "\nepoch 3\n", "text, not a checkpoint: 'epoch 3'"),
      foreign("spaces", "   1.0 2.0 3.0\n", "text"),
      foreign("pickle", testdata("corrupt/plain_pickle.pt"), "pickle"),
      foreign(
          "pickle_2",
          std::string("\x80\x02}q\0.", 6),
          "bare pickle of protocol 2"),
      foreign(
          "pickled_tensors",
          starting("\x80\x04}\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2"
                   "\x8c\x0dtorch.storage\x8c\x10_load_from_bytes"),
          "pickle.dump"),
      {.row = 4,
       .name = "noise",
       .bytes = testdata("corrupt/noise.pt"),
       .detail = "E_WRONG_FORMAT",
       .code = ErrorCode::kUnsupported,
       .says = {"expected a checkpoint of PyTorch", "100 bytes"}},
  };
}

BadInput cut(std::string name, const std::string& whole, std::size_t size) {
  return {
      .row = 5,
      .name = std::move(name),
      .bytes = whole.substr(0, size),
      .detail = "E_ZIP_NO_EOCD",
      .says = {"ends at byte " + std::to_string(size), "Hint: "},
      .offset = size};
}

std::vector<BadInput> cut_files() {
  const std::string whole = testdata("valid/tiny.pt");
  std::vector<BadInput> rows{
      cut("cut_1", whole, whole.size() - 1),
      cut("cut_30_percent", whole, whole.size() * 7 / 10),
      cut("cut_90_percent", whole, whole.size() / 10),
      cut("cut_in_first_header", whole, 10),
      cut("cut_old_writer", checkpoint(), checkpoint().size() / 2)};
  rows[0].says.emplace_back("of " + std::to_string(whole.size()));
  rows[1].says.emplace_back("of " + std::to_string(whole.size()));
  rows[1].says.emplace_back("data.pkl");
  return rows;
}

} // namespace

std::vector<BadInput> file_rows() {
  const std::string whole = checkpoint();
  ZipBytes archive;
  archive.add("a/data.pkl", "x");
  std::vector<BadInput> rows{
      {.row = 1,
       .name = "empty",
       .detail = "E_EMPTY",
       .says = {"the file is empty"},
       .offset = 0},
      {.row = 2,
       .name = "magic_cut",
       .bytes = "PK\3",
       .detail = "E_TRUNCATED",
       .says = {"zip magic truncated after 3"},
       .offset = 3},
      {.row = 3,
       .name = "lfs_pointer",
       .bytes = testdata("corrupt/lfs_pointer.pt"),
       .detail = "E_LFS_POINTER",
       .code = ErrorCode::kUnsupported,
       .says = {"46827520", "sha256:00ff", "git lfs pull"}},
      {.row = 6,
       .name = "fake_end_in_comment",
       .bytes = archive.finish({.comment = ZipBytes().finish()}),
       .detail = "E_ZIP_AMBIGUOUS",
       .says = {"at 97", "at 119"}},
      {.row = 6,
       .name = "fake_end_that_stops_early",
       .bytes = checkpoint(
           tensor_pickle(),
           {.end = {.comment = ZipBytes().finish() + "tail"}}),
       .detail = "E_ZIP_AMBIGUOUS"},
      {.row = 7,
       .name = "script_before",
       .bytes = testdata("corrupt/prefix.pt"),
       .detail = "E_PREFIX",
       .offset = 0},
      {.row = 7,
       .name = "pickle_before",
       .bytes = Pickle().op('N').stop().bytes() + whole,
       .detail = "E_PREFIX",
       .offset = 0},
      {.row = 7,
       .name = "archive_before",
       .bytes = archive.finish() + whole,
       .detail = "E_PREFIX"},
      {.row = 8,
       .name = "bytes_after",
       .bytes = whole + std::string(40, 'x'),
       .outcome = Outcome::kWarned,
       .detail = "W_TRAILING",
       .says = {"40 foreign bytes"}},
  };
  for (auto&& more : {foreign_formats(), cut_files()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
