// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/libtorch_writer.h"

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

Value small_weights() {
  return Value::ordered_dict(
      {{"fc.weight", floats({1, 2})},
       {"fc.bias", floats({3})},
       {"scale", floats({4})},
       {"fc.running_mean", floats({5})}});
}

class LibtorchWriter : public testing::Test {
 protected:
  Checkpoint written_and_read(const Value& root) {
    const Status status = save("m.pt", root, {.format = "libtorch"}, fs_);
    EXPECT_TRUE(status) << to_string(status.error());
    auto file = load("m.pt", {}, fs_);
    EXPECT_TRUE(file) << to_string(file.error());
    return file ? *std::move(file) : Checkpoint{};
  }

  std::string record(const std::string& name) {
    const auto bytes = read_text(fs_, "m.pt");
    const auto zip = ZipReader::open(make_source(as_byte_span(*bytes)));
    std::vector<std::byte> scratch;
    const ZipRecord* found = zip->find(name);
    if (found == nullptr) {
      return "no record";
    }
    const auto content = zip->read(*found, scratch);
    return {reinterpret_cast<const char*>(content->data()), content->size()};
  }

  std::string refusal(const Value& root) {
    const Status status = save("m.pt", root, {.format = "libtorch"}, fs_);
    return status ? "" : status.error().detail;
  }

  MemoryFs fs_;
};

TEST_F(LibtorchWriter, KeepsAStateDict) {
  const Checkpoint file = written_and_read(small_weights());
  EXPECT_EQ(file.format, "torchscript");
  EXPECT_EQ(*digest(file.root), *digest(small_weights()));
  ASSERT_NE(file.root.as_dict(), nullptr);
  EXPECT_EQ(file.root.as_dict()->kind, Dict::Kind::kOrderedDict);
  EXPECT_NE(file.root.find("fc.weight")->as_tensor(), nullptr);
}

// Python's torch.jit.load gives an empty state_dict for plain attributes.
TEST_F(LibtorchWriter, GivesTheTensorsOfAProgramTheirRoles) {
  Tensor weight = floats({1});
  weight.requires_grad = true;
  const Value program = Object{
      .global = "__torch__.Net",
      .state = std::make_shared<Value>(Value::dict(
          {{"weight", weight}, {"mask", floats({2})}, {"training", false}}))};
  (void)written_and_read(program);
  EXPECT_THAT(
      record("code/__torch__.py"),
      HasSubstr("  __parameters__ = [\"weight\", ]\n"
                "  __buffers__ = [\"mask\", ]\n"));
}

TEST_F(LibtorchWriter, DescribesModulesInCode) {
  (void)written_and_read(small_weights());
  EXPECT_EQ(
      record("code/__torch__.py"),
      "class Module(Module):\n"
      "  __parameters__ = [\"scale\", ]\n"
      "  __buffers__ = []\n"
      "  fc : __torch__.___torch_mangle_0.Module\n"
      "  scale : Tensor\n");
  EXPECT_EQ(
      record("code/__torch__/___torch_mangle_0.py"),
      "class Module(Module):\n"
      "  __parameters__ = [\"weight\", \"bias\", ]\n"
      "  __buffers__ = [\"running_mean\", ]\n"
      "  weight : Tensor\n"
      "  bias : Tensor\n"
      "  running_mean : Tensor\n");
  EXPECT_EQ(record("constants.pkl"), "\x80\x02).");
}

TEST_F(LibtorchWriter, NamesModulesWithoutWeights) {
  Value root = Value::ordered_dict(
      {{"0.weight", floats({1})}, {"2.weight", floats({2})}});
  (void)written_and_read(root);
  EXPECT_THAT(
      record("code/__torch__.py"),
      HasSubstr("__annotations__[\"1\"] = __torch__"));
  root.as_dict()->attributes.emplace_back(
      "_metadata",
      Value::ordered_dict(
          {{"", Value::dict({})},
           {"0", Value::dict({})},
           {"relu", Value::dict({})}}));
  (void)written_and_read(root);
  EXPECT_THAT(record("code/__torch__.py"), HasSubstr("relu : __torch__"));
  EXPECT_THAT(
      record("code/__torch__.py"),
      testing::Not(HasSubstr("__annotations__[\"1\"]")));
}

TEST_F(LibtorchWriter, KeepsAWholeCheckpoint) {
  const Value root = Value::dict(
      {{"epoch", 3},
       {"lr", 0.5},
       {"name", "x"},
       {"none", None()},
       {"best", true},
       {"far", std::int64_t{1} << 40},
       {"betas", Value::tuple({0.9, 0.999})},
       {"losses", Value::list({1.5, 2.5})},
       {"words", Value::list({"a", "b"})},
       {"device", Device{"cuda", 1}},
       {"state_dict", small_weights()},
       {"state", Value::dict({{0, Value::dict({{"step", 1}})}})},
       {"groups", Value::list({Value::dict({{"lr", 0.5}})})}});
  const Checkpoint file = written_and_read(root);
  EXPECT_EQ(*digest(file.root), *digest(root));
  EXPECT_EQ(*file.root.find("epoch")->as_int(), 3);
  EXPECT_EQ(*file.root.find("far")->as_int(), std::int64_t{1} << 40);
  EXPECT_TRUE(file.root.find("none")->is_none());
  EXPECT_EQ(*file.root.find("losses")->as_list()->items[1].as_float(), 2.5);
  EXPECT_EQ(*file.root.find("words")->as_list()->items[1].as_string(), "b");
  EXPECT_EQ(file.root.find("device")->as_device()->index, 1);
  EXPECT_NE(file.root.find("state_dict")->find("fc.bias"), nullptr);
  EXPECT_NE(file.root.find("state")->find(std::int64_t{0}), nullptr);
  EXPECT_EQ(
      *file.root.find("groups")->as_list()->items[0].find("lr")->as_float(),
      0.5);
}

TEST_F(LibtorchWriter, NamesTensorsByNumberAsCppDoes) {
  const Checkpoint list =
      written_and_read(Value::list({floats({1}), floats({2})}));
  EXPECT_NE(list.root.find("1")->as_tensor(), nullptr);
  const Checkpoint alone = written_and_read(floats({1}));
  EXPECT_NE(alone.root.find("0")->as_tensor(), nullptr);
}

TEST_F(LibtorchWriter, KeepsNewTypesQuantizersAndFlags) {
  Tensor quantized = tensor_of<std::int8_t>(DType::kQInt8, {1, 2}, {2});
  quantized.quantizer =
      std::make_shared<Value>(quantizer_value({.scale = 0.5, .zero_point = 1}));
  Tensor conjugate = tensor_of<float>(DType::kComplex64, {1, 2}, {1});
  conjugate.storage->nbytes = 8;
  conjugate.is_conj = true;
  const Value root = Value::ordered_dict(
      {{"small", tensor_of<std::uint16_t>(DType::kUInt16, {1, 2}, {2})},
       {"q", quantized},
       {"z", conjugate}});
  const Checkpoint file = written_and_read(root);
  EXPECT_EQ(*digest(file.root), *digest(root));
  EXPECT_EQ(
      quantizer_text(*file.root.find("q")->as_tensor()),
      "scale 0.5, zero point 1");
  EXPECT_TRUE(file.root.find("z")->as_tensor()->is_conj);
  EXPECT_THAT(record("data.pkl"), HasSubstr("UInt16Storage"));
}

// One tensor under two names is no copy: a model whose weights are tied.
TEST_F(LibtorchWriter, KeepsATensorThatTwoNamesShare) {
  const Value weight = floats({1, 2});
  const Checkpoint file = written_and_read(Value::ordered_dict(
      {{"a.weight", weight}, {"b.weight", weight}, {"c", floats({1, 2})}}));
  const void* shared = file.root.find("a.weight")->address();
  EXPECT_EQ(file.root.find("b.weight")->address(), shared);
  EXPECT_NE(file.root.find("c")->address(), shared);
}

TEST_F(LibtorchWriter, KeepsComplexNumbers) {
  const Complex number{.real = 1, .imag = -2};
  const Checkpoint file = written_and_read(
      Value::dict({{"z", number}, {"many", Value::list({number, number})}}));
  EXPECT_EQ(file.root.find("z")->as_complex()->imag, -2);
  EXPECT_EQ(file.root.find("many")->as_list()->items.size(), 2U);
  // LibTorch does not know the old name of the module.
  EXPECT_THAT(record("data.pkl"), HasSubstr("cbuiltins\ncomplex\n"));
  EXPECT_THAT(record("code/__torch__.py"), HasSubstr("  z : complex\n"));
}

TEST_F(LibtorchWriter, SaysWhatHelpsAgainstAValueWithoutAType) {
  const Value state = Value::dict({{"w", floats({1})}, {"s", Set{}}});
  const Status plain = save("m.pt", state, {.format = "libtorch"}, fs_);
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().hint, HasSubstr("'lockstep ckpt drop'"));
  // Nobody can drop an entry of a program.
  const Value program = Object{
      .global = "__torch__.Net",
      .state = std::make_shared<Value>(state)};
  const Status script = save("m.pt", program, {.format = "libtorch"}, fs_);
  ASSERT_FALSE(script);
  EXPECT_THAT(
      script.error().hint,
      HasSubstr("'lockstep ckpt convert --to pt' writes its tensors alone"));
}

TEST_F(LibtorchWriter, RefusesWhatLibTorchCannotHold) {
  EXPECT_EQ(refusal(Value::dict({{"s", Set{}}})), "E_NOT_SCRIPT");
  EXPECT_EQ(refusal(Value::dict({{"b", Bytes{"x"}}})), "E_NOT_SCRIPT");
  EXPECT_EQ(refusal(Value(3)), "E_NOT_SCRIPT");
  EXPECT_EQ(refusal(Value::dict({{"a\nb", 1}})), "E_NOT_SCRIPT");
  EXPECT_EQ(refusal(Value::dict({{"", 1}})), "E_NOT_SCRIPT");
  EXPECT_EQ(
      refusal(Value::ordered_dict({{"a", floats({1})}, {"a.b", floats({1})}})),
      "E_NOT_SCRIPT");
  for (const char* name : {".a", "a.", "a..b", "."}) {
    EXPECT_EQ(
        refusal(Value::ordered_dict({{name, floats({1})}})),
        "E_NOT_SCRIPT")
        << name;
  }
  EXPECT_EQ(refusal(Value::dict({{1, 1}, {"1", 2}})), "E_NOT_SCRIPT");
  Tensor outside = floats({1});
  outside.sizes = {9};
  EXPECT_EQ(refusal(Value::dict({{"w", outside}})), "E_TENSOR");
  Tensor other = floats({1});
  Tensor same = other;
  same.dtype = DType::kInt32;
  EXPECT_EQ(refusal(Value::list({other, same})), "E_NOT_SCRIPT");
}

Value sparse_of(const std::string& layout) {
  const auto call_of = [](const char* name, const Value& args) {
    return Object{.global = name, .args = std::make_shared<Value>(args)};
  };
  const Tensor indices = tensor_of<std::int64_t>(DType::kInt64, {0, 1}, {2});
  Tuple parts{.items = {indices, indices, Size{{1, 2}}}};
  if (layout != "sparse_coo") {
    parts.items.insert(parts.items.begin(), indices);
  }
  return Object{call_of(
      "torch._utils._rebuild_sparse_tensor",
      Value::tuple(
          {call_of(
               "torch.serialization._get_layout",
               Value::tuple({"torch." + layout})),
           std::move(parts)}))};
}

// torch::jit::load takes sparse_coo and sparse_csr alone.
TEST_F(LibtorchWriter, RefusesSparseLayoutsThatLibTorchDoesNotRead) {
  for (const char* layout : {"sparse_coo", "sparse_csr"}) {
    const Value root = Value::dict({{"w", sparse_of(layout)}});
    const Status saved = save("m.pt", root, {.format = "libtorch"}, fs_);
    EXPECT_TRUE(saved) << to_string(saved.error());
  }
  for (const char* layout : {"sparse_csc", "sparse_bsr", "sparse_bsc"}) {
    const Value root = Value::dict({{"w", sparse_of(layout)}});
    const Status saved = save("m.pt", root, {.format = "libtorch"}, fs_);
    ASSERT_FALSE(saved) << layout;
    EXPECT_EQ(saved.error().detail, "E_NOT_SCRIPT");
    EXPECT_THAT(saved.error().message, HasSubstr(layout));
    EXPECT_THAT(saved.error().hint, HasSubstr("to_sparse_csr"));
  }
}

} // namespace
} // namespace lockstep::ckpt
