// SPDX-License-Identifier: BSD-3-Clause
//
// What the safetensors package reads and refuses in a header, as a table; the
// oracle test asks the package itself. We read and refuse the same, except for
// the rows that say so (docs/formats/flat.md).
#include <gtest/gtest.h>

#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;

// Who reads a header.
enum class Reads { kBoth, kNobody, kPackageOnly, kWeOnly };

struct Header {
  std::string text = {};
  Reads reads = Reads::kBoth;
};

const std::string kField = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
const std::string kTensor = R"("w":{)" + kField + "}";

std::string named(const std::string& name) {
  return "{" + name + ":{" + kField + "}}";
}

std::string fields(const std::string& text) {
  return R"({"w":{)" + text + "}}";
}

std::string with_metadata(const std::string& text) {
  return R"({"__metadata__":)" + text + "," + kTensor + "}";
}

std::string extra(const std::string& text) {
  return fields(kField + R"(,"x":)" + text);
}

std::string nested(std::size_t depth) {
  return extra(std::string(depth, '[') + std::string(depth, ']'));
}

std::vector<Header> metadata_headers() {
  using enum Reads;
  return {
      {with_metadata("null")},
      {"{" + kTensor + R"(,"__metadata__":null})"},
      {with_metadata("{}")},
      {with_metadata(R"({"":""})")},
      {with_metadata(" \t\r\nnull \n")},
      {with_metadata("nul"), kNobody},
      {with_metadata("NULL"), kNobody},
      {with_metadata("nullx"), kNobody},
      {with_metadata(R"({"a":null})"), kNobody},
      {with_metadata(R"({"a":1})"), kNobody},
      {with_metadata(R"({"a":true})"), kNobody},
      {with_metadata(R"({"a":["b"]})"), kNobody},
      {with_metadata(R"({"a":{"b":"c"}})"), kNobody},
      {with_metadata(R"({"a":"\ud800"})"), kNobody},
      {with_metadata("[]"), kNobody},
      {with_metadata(R"([["a","b"]])"), kNobody},
      {with_metadata(R"("")"), kNobody},
      {with_metadata("false"), kNobody},
      {with_metadata("0"), kNobody},
      {with_metadata(R"(null,"__metadata__":null)"), kNobody},
      {with_metadata(R"({"a":"1"},"__metadata__":{})"), kNobody},
      {with_metadata(R"({"a":"1","a":"2"})")},
      {with_metadata(R"({"a":"1","a":2})"), kNobody},
  };
}

std::vector<Header> spaced_headers() {
  using enum Reads;
  const std::string whole = "{" + kTensor + "}";
  return {
      {" " + whole},
      {"\t\n\r " + whole + "\t\n\r "},
      {std::string(5000, '\n') + whole},
      {R"({ "w" : { "dtype" : "F32" , "shape" : [ 2 ] , )"
       R"("data_offsets" : [ 0 , 8 ] } })"},
      {"\v" + whole, kNobody},
      {"\f" + whole, kNobody},
      {"\0"s + whole, kNobody},
      {whole + "\0"s, kNobody},
      {"\xef\xbb\xbf" + whole, kNobody}, // byte-order mark
      {"\xc2\xa0" + whole, kNobody}, // no-break space
      {whole + "x", kNobody},
      {whole + " {}", kNobody},
      {"{" + kTensor + ",}", kNobody},
      {"{," + kTensor + "}", kNobody},
      {"{//c\n" + kTensor + "}", kNobody},
      {"{" + kTensor, kNobody},
      {"", kNobody},
      {"   ", kNobody},
      {"null", kNobody},
      {"[" + whole + "]", kNobody},
      {"[null," + whole + "]", kNobody},
  };
}

std::vector<Header> named_headers() {
  using enum Reads;
  return {
      {named(R"("")")},
      {named(R"("a\u0000b")")},
      {named(R"("\ud83d\ude00")")},
      {named(R"("\uD83D\uDE00")")},
      {named(R"("\/")")},
      {named("\"a\x7f\"")},
      {named(R"("\ud800")"), kNobody},
      {named(R"("\udc00")"), kNobody},
      {named(R"("\ud83dx")"), kNobody},
      {named(R"("\ud83d\u0041")"), kNobody},
      {named(R"("\u12")"), kNobody},
      {named(R"("\x")"), kNobody},
      {named("\"\xed\xa0\x80\""), kNobody}, // a surrogate in UTF-8
      {named("\"\xff\""), kNobody},
      {named("\"a\nb\""), kNobody},
      {named("\"a\0\""s), kNobody},
      {named("w"), kNobody},
      {named("'w'"), kNobody},
      {"{" + kTensor + "," + kTensor + "}", kPackageOnly},
      {R"({"w":null})", kNobody},
      {R"({"w":[]})", kNobody},
      {R"({"w":["F32",[2],[0,8]]})", kPackageOnly},
      {R"({"w":["F32",[2],[0,8],1]})", kNobody},
  };
}

std::vector<Header> field_headers() {
  using enum Reads;
  const auto shape = [](const std::string& text) {
    return fields(
        R"("dtype":"F32","shape":)" + text + R"(,"data_offsets":[0,8])");
  };
  const auto offsets = [](const std::string& text) {
    return fields(R"("dtype":"F32","shape":[2],"data_offsets":)" + text);
  };
  const auto dtype = [](const std::string& text) {
    return fields(
        R"("dtype":)" + text + R"(,"shape":[2],"data_offsets":[0,8])");
  };
  return {
      {shape("[ 1,2 ]")},
      {shape("[2.0]"), kNobody},
      {shape("[2e0]"), kNobody},
      {shape(R"(["2"])"), kNobody},
      {shape("[true]"), kNobody},
      {shape("[null]"), kNobody},
      {shape("[-0]"), kNobody},
      {shape("[+2]"), kNobody},
      {shape("[02]"), kNobody},
      {shape("[0x2]"), kNobody},
      {shape("[2,]"), kNobody},
      {shape("{}"), kNobody},
      {shape("null"), kNobody},
      {shape("2"), kNobody},
      {shape("[18446744073709551616]"), kNobody},
      {offsets("[0 ,\t8]")},
      {offsets("[0,8,0]"), kNobody},
      {offsets("[8]"), kNobody},
      {offsets("[00,8]"), kNobody},
      {offsets("[1,9]"), kNobody},
      {offsets(R"({"0":0,"1":8})"), kNobody},
      {dtype(R"("\u004632")")},
      {dtype(R"("f32")"), kNobody},
      {dtype(R"("F32 ")"), kNobody},
      {dtype("1"), kNobody},
      {dtype("null"), kNobody},
      {dtype(R"(["F32"])"), kNobody},
      {dtype(R"({"F32":null})"), kPackageOnly},
      {fields(R"("\u0064type":"F32","shape":[2],"data_offsets":[0,8])")},
      {fields(kField + "," + R"("shape":[2])"), kNobody},
      {fields(kField + "," + R"("dtype":"F32")"), kNobody},
      {fields(R"("dtype":"F32","data_offsets":[0,8])"), kNobody},
      {extra("-1")},
      {extra("null")},
      {extra("99999999999999999999999")},
      {extra(R"([{"y":-1.5e+3},[]])")},
      {extra("NaN"), kNobody},
      {extra("1e999"), kWeOnly},
      {extra(R"("\ud800")"), kNobody},
      {extra(R"(1,"x":2)"), kPackageOnly},
      {nested(125)},
      {nested(126), kNobody},
  };
}

std::vector<Header> all_headers() {
  std::vector<Header> all;
  for (auto* part :
       {metadata_headers, spaced_headers, named_headers, field_headers}) {
    for (Header& header : part()) {
      all.push_back(std::move(header));
    }
  }
  return all;
}

TEST(SafetensorsHeaders, AreReadAsTheTableSays) {
  for (const Header& header : all_headers()) {
    const std::string bytes = safetensors(header.text, std::string(8, '\0'));
    const auto file = load_bytes(bytes);
    const bool is_read =
        header.reads == Reads::kBoth || header.reads == Reads::kWeOnly;
    EXPECT_EQ(file.has_value(), is_read)
        << header.text.substr(0, 200) << "\n"
        << (file ? "" : to_string(file.error()));
    if (file) {
      EXPECT_EQ(file->root.as_dict()->items.size(), 1U);
    }
  }
}

TEST(SafetensorsHeaderOracle, TheTableIsThePackages) {
  const test::ScratchDir dir;
  std::string wanted;
  std::size_t count = 0;
  for (const Header& header : all_headers()) {
    const std::string path = dir / (std::to_string(count++) + ".safetensors");
    const auto file = real_fs().create(path, 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(
        as_byte_span(safetensors(header.text, std::string(8, '\0')))));
    const bool is_read =
        header.reads == Reads::kBoth || header.reads == Reads::kPackageOnly;
    wanted += is_read ? "yes\n" : "no\n";
  }
  EXPECT_EQ(
      test::run_python(
          "ckpt_safetensors.py",
          {"accepts", dir.path(), std::to_string(count)}),
      wanted);
}

} // namespace
} // namespace lockstep::ckpt
