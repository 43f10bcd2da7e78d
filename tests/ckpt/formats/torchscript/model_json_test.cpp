// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/model_json.h"

#include <list>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

constexpr const char* kModelJson = R"({
  "protoVersion": "2",
  "mainModule": {
    "name": "Net", "torchscriptArena": {"key": "code/net.py"},
    "parameters": [
      {"isBuffer": false, "tensorId": "1", "name": "scale"},
      {"isBuffer": true, "tensorId": "0", "name": "count"}],
    "attributes": [{"type": "Tensor", "name": "extra", "id": "0"}],
    "submodules": [
      {"name": "fc", "parameters": [{"tensorId": "2", "name": "weight"}]}]},
  "tensors": [
    {"dims": [], "offset": "0", "strides": [], "requiresGrad": false,
     "dataType": "INT64", "data": {"key": "tensors/0"}, "device": "cpu"},
    {"dims": ["2"], "offset": "0", "strides": ["1"], "requiresGrad": true,
     "dataType": "FLOAT", "data": {"key": "tensors/1"}, "device": "cpu"},
    {"dims": ["1"], "offset": "1", "strides": ["1"], "dataType": "FLOAT",
     "data": {"key": "tensors/1"}}]})";

Result<Checkpoint> open_model(const std::string& model) {
  ZipBytes zip;
  zip.add("net/version", "2\n");
  zip.add("net/code/net.py", "op_version_set = 0\n");
  zip.add("net/tensors/0", std::string(8, '\1'));
  zip.add("net/tensors/1", std::string(8, '\2'));
  zip.add(
      "net/attributes.pkl",
      Pickle()
          .global("torch.jit._pickle", "build_tensor_from_id")
          .int4(1)
          .tuple(1)
          .op('R')
          .tuple(1)
          .stop()
          .bytes());
  zip.add("net/model.json", model);
  static std::list<std::string> kept; // sources do not own their bytes
  return load(
      make_source(as_byte_span(kept.emplace_back(zip.finish()))),
      "net.pt");
}

std::string
detail_of(std::string model, std::string_view from, std::string_view to) {
  const std::size_t at = model.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const auto file = open_model(model.replace(at, from.size(), to));
  return file ? "" : file.error().detail;
}

TEST(ModelJson, ReadsParametersAttributesAndSubmodules) {
  const auto file = open_model(kModelJson);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "torchscript");
  EXPECT_EQ(file->era, "TorchScript of torch 1.0 to 1.2");
  EXPECT_EQ(
      to_text(file->root),
      "OrderedDict({\n  'scale': tensor(float32 [2]),\n"
      "  'count': tensor(int64 []),\n  'extra': tensor(float32 [2]),\n"
      "  'fc.weight': tensor(float32 [1]),\n})");
  const Tensor& scale = *file->root.find("scale")->as_tensor();
  EXPECT_TRUE(scale.requires_grad);
  EXPECT_EQ(scale.storage, file->root.find("fc.weight")->as_tensor()->storage);
}

TEST(ModelJson, RefusesBrokenModels) {
  EXPECT_EQ(
      detail_of(kModelJson, "\"mainModule\"", "\"other\""),
      "E_MODEL_JSON");
  EXPECT_EQ(detail_of(kModelJson, "{", "["), "E_MODEL_JSON");
  EXPECT_EQ(detail_of(kModelJson, "\"Net\"", "\"\xff\""), "E_MODEL_JSON");
  EXPECT_EQ(detail_of(kModelJson, "\"Net\"", "7"), "E_MODEL_JSON");
  EXPECT_EQ(detail_of(kModelJson, "INT64", "STRING"), "E_MODEL_JSON");
  EXPECT_EQ(
      detail_of(kModelJson, "\"tensorId\": \"2\"", "\"tensorId\": \"9\""),
      "E_MODEL_JSON");
  EXPECT_EQ(
      detail_of(kModelJson, "\"id\": \"0\"", "\"id\": \"5\""),
      "E_MODEL_JSON");
  EXPECT_EQ(detail_of(kModelJson, "tensors/0", "../x"), "E_NO_STORAGE");
  EXPECT_EQ(
      detail_of(kModelJson, "\"dims\": [\"2\"]", "\"dims\": [\"3\"]"),
      "E_VIEW_BOUNDS");
  EXPECT_EQ(
      detail_of(kModelJson, "\"dims\": [\"2\"]", "\"dims\": [\"x\"]"),
      "E_MODEL_JSON");
  EXPECT_EQ(
      detail_of(
          kModelJson,
          "\"dims\": []",
          "\"dims\": [" + join(std::vector<std::string>(65, "1"), ",") + "]"),
      "E_MODEL_JSON");
}

TEST(ModelJson, TakesNumbersAndNulls) {
  EXPECT_EQ(
      detail_of(kModelJson, "\"tensorId\": \"2\"", "\"tensorId\": 2"),
      "");
  EXPECT_EQ(detail_of(kModelJson, "\"name\": \"Net\"", "\"name\": null"), "");
}

// A text of brackets must not become a hundred times its size.
TEST(ModelJson, RefusesToNestOrToGrowWithoutEnd) {
  std::string deep = R"({"mainModule":)";
  for (int i = 0; i < 300; ++i) {
    deep += R"({"submodules":[)";
  }
  EXPECT_EQ(open_model(deep).error().detail, "E_DEPTH");
  const std::string brackets(100'000, '[');
  EXPECT_EQ(
      open_model("{\"other\":" + brackets).error().detail,
      "E_MODEL_JSON");
}

} // namespace
} // namespace lockstep::ckpt
