// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/load/diagnose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::uint64_t offset = 0;
  std::string_view bytes = {};
  std::string_view what = {};
  std::string_view hint = {};
};

constexpr std::string_view kTorch7 = "a file of Torch7 (Lua), before PyTorch";
constexpr std::string_view kTorch7Hint =
    "PyTorch up to 0.4.1 reads it with torch.utils.serialization.load_lua; "
    "save the weights from there";
constexpr std::string_view kPicture = "a picture";
constexpr std::string_view kPictureHint = "download the checkpoint itself";

// Anything may be inside.
constexpr std::string_view kZlib = "zlib data (joblib?)";
constexpr std::string_view kZlibHint =
    "unpack it first: zlib-flate -uncompress";
constexpr std::string_view kOldZlib = "zlib data of joblib before 0.9.3";
constexpr std::array kPacked{
    Magic{0, "\x1f\x8b"sv, "gzip data", "unpack it first: gunzip"},
    Magic{0, "BZh"sv, "bzip2 data", "unpack it first: bunzip2"},
    Magic{0, "\xfd\x37zXZ"sv, "xz data", "unpack it first: unxz"},
    // joblib goes by two bytes, whatever the size of the dictionary.
    Magic{0, "\x5d\0"sv, "lzma data", "unpack it first: unlzma"},
    Magic{0, "\x04\x22\x4d\x18"sv, "lz4 data", "unpack it first: unlz4"},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "zstd data", "unpack it first: unzstd"},
    Magic{0, "7z\xbc\xaf"sv, "a 7z archive", "unpack it first: 7z x"},
    Magic{0, "Rar!\x1a\x07"sv, "a RAR archive", "unpack it first: unrar x"},
    Magic{
        0,
        "ZF"sv,
        kOldZlib,
        "load it with joblib where you trust it, and save the weights alone"},
    Magic{0, "x\x01"sv, kZlib, kZlibHint},
    Magic{0, "x^"sv, kZlib, kZlibHint},
    Magic{0, "x\x9c"sv, kZlib, kZlibHint},
    Magic{0, "x\xda"sv, kZlib, kZlibHint},
};

// First match wins.
constexpr std::array kMagics{
    Magic{
        0,
        "{"sv,
        "JSON text (the answer of a server?)",
        "look at it with a text viewer"},
    Magic{
        0,
        "\x89HDF"sv,
        "an HDF5 file (Keras?)",
        "convert it with the framework that wrote it"},
    Magic{0, "GGUF"sv, "a GGUF file", "convert it with the tool that wrote it"},
    Magic{
        4,
        "PTMF"sv,
        "a TorchScript module for phones, as a flatbuffer",
        "save the module again with its method 'save'"},
    Magic{
        4,
        "TFL3"sv,
        "a TensorFlow Lite file",
        "convert it with the framework that wrote it"},
    // An object or a table, the first of the file: torch/File.lua's numbers.
    Magic{0, "\4\0\0\0\1\0\0\0"sv, kTorch7, kTorch7Hint},
    Magic{0, "\3\0\0\0\1\0\0\0"sv, kTorch7, kTorch7Hint},
    Magic{
        0,
        "\x12\1\0\0\0\0\0\0"sv,
        "a parameter file of MXNet",
        "convert it with the framework that wrote it"},
    Magic{0, "\x89PNG"sv, kPicture, kPictureHint},
    Magic{0, "\xff\xd8\xff"sv, kPicture, kPictureHint},
    Magic{0, "%PDF"sv, "a PDF document", "download the checkpoint itself"},
    Magic{
        0,
        "\x08"sv,
        "a protobuf file (ONNX or TensorFlow?)",
        "convert it with the framework that wrote it"},
    Magic{
        0,
        "\0\0\0\0\0\0\0\0"sv,
        "zeros: a copy that was interrupted, or a failed disk",
        "copy the file again"},
};

Error wrong_format(std::string message, std::string_view hint) {
  return read_error(
      ErrorCode::kUnsupported,
      "E_WRONG_FORMAT",
      std::move(message),
      std::string(hint));
}

// "oid sha256:4d7a...\nsize 12345\n" after the first line.
Error lfs_pointer(std::string_view text) {
  std::string oid = "?";
  std::string size = "?";
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("oid ")) {
      oid = line.substr(4);
    } else if (line.starts_with("size ")) {
      size = line.substr(5);
    }
  }
  return read_error(
      ErrorCode::kUnsupported,
      "E_LFS_POINTER",
      format(
          "this is a Git LFS pointer, not the file; the file has {} bytes, {}",
          escape(size),
          escape(oid)),
      "run 'git lfs pull'");
}

Error plain_pickle(std::string_view text) {
  const auto has = [text](std::string_view name) {
    return text.find(name) != std::string_view::npos;
  };
  if (has("_load_from_bytes")) {
    return wrong_format(
        "these are tensors that pickle.dump wrote, not torch.save",
        "save them in Python: torch.save(pickle.load(open(path, 'rb')), "
        "'weights.pth')");
  }
  const bool is_inside = has("torch._utils") && has("storage");
  if (is_inside) {
    return wrong_format(
        "this is 'data.pkl' from inside a checkpoint that somebody unpacked; "
        "the weights are in other files",
        "name its folder, which is read as it is");
  }
  return wrong_format(
      format(
          "this is a bare pickle of protocol {}, not a checkpoint",
          static_cast<int>(text[1])),
      "it can run code when loaded; save weights with torch.save");
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Without byte order mark and leading space, in lower case.
std::string plain_start(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
  }
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  return lower_case(text.substr(0, 16));
}

struct Markup {
  std::string_view start = {};
  std::string_view what = {};
  std::string_view hint = {};
};

constexpr std::string_view kWebPage =
    "a web page that was saved instead of the file";
constexpr std::string_view kWebHint =
    "download it again; the server answered with HTML";

constexpr std::array kMarkups{
    Markup{"<!doctype html", kWebPage, kWebHint},
    Markup{"<html", kWebPage, kWebHint},
    Markup{"<head", kWebPage, kWebHint},
    Markup{
        "<?xml",
        "XML text that was saved instead of the file",
        "download it again; a storage server answers so when access is denied"},
};

bool is_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return is_blank(c) || (c >= ' ' && c <= '~');
  });
}

Error plain_text(std::string_view text) {
  std::string_view line = text;
  while (!line.empty() && is_blank(line.front())) {
    line.remove_prefix(1);
  }
  line = line.substr(0, line.find_first_of("\r\n"));
  return wrong_format(
      format("this is text, not a checkpoint: '{}'", escape(line, 60)),
      "if it should be one, copy it again in binary mode");
}

// Null if none matches.
template <std::size_t size>
const Magic* find_magic(
    const std::array<Magic, size>& magics,
    std::string_view text) {
  const auto* const found =
      std::ranges::find_if(magics, [text](const Magic& magic) {
        return text.size() >= magic.offset + magic.bytes.size() &&
               text.substr(magic.offset).starts_with(magic.bytes);
      });
  return found == magics.end() ? nullptr : &*found;
}

// Behind "ZF": what Python takes for a number in base 16.
bool has_length(std::string_view text) {
  constexpr std::size_t kDigits = 19;
  constexpr std::string_view kMarks = "xX_+- \t\n\v\f\r";
  const std::string_view digits = text.substr(0, kDigits);
  return digits.size() == kDigits && std::ranges::all_of(digits, [&](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0 ||
                  kMarks.find(c) != std::string_view::npos;
         });
}

// A text may start like zlib's data.
const Magic* find_packed(std::string_view text) {
  const Magic* const found = find_magic(kPacked, text);
  const bool is_words =
      found != nullptr &&
      ((found->what == kZlib && is_text(text)) ||
       (found->what == kOldZlib && !has_length(text.substr(2))));
  return is_words ? nullptr : found;
}

} // namespace

bool is_packed(ByteSpan head) {
  return find_packed(as_text(head)) != nullptr;
}

Error diagnose(ByteSpan head, std::uint64_t file_bytes) {
  const std::string_view text = as_text(head);
  if (text.empty()) {
    Error error = read_error(
        ErrorCode::kCorrupt,
        "E_EMPTY",
        "the file is empty",
        "a full disk or an interrupted save leaves such files");
    error.offset = 0;
    return error;
  }
  if (text.starts_with("version https://git-lfs")) {
    return lfs_pointer(text);
  }
  const Magic* const packed = find_packed(text);
  const Magic* const magic =
      packed == nullptr ? find_magic(kMagics, text) : packed;
  if (magic != nullptr) {
    return wrong_format(format("this is {}", magic->what), magic->hint);
  }
  // Python says PROTO from protocol 2 on.
  if (starts_like_pickle(text) && text[1] >= 2) {
    return plain_pickle(text);
  }
  const std::string start = plain_start(text);
  for (const Markup& markup : kMarkups) {
    if (start.starts_with(markup.start)) {
      return wrong_format(format("this is {}", markup.what), markup.hint);
    }
  }
  if (is_text(text)) {
    return plain_text(text);
  }
  return wrong_format(
      format(
          "unknown file format; expected a checkpoint of PyTorch, "
          "safetensors or NumPy, got {} bytes that start with '{}'",
          file_bytes,
          escape(text.substr(0, 8))),
      "");
}

} // namespace lockstep::ckpt
