// SPDX-License-Identifier: BSD-3-Clause
//
// Random state dicts of every element type go through every writer and come
// back with the same content digest. A new row of `format_writers()` joins by
// itself.
#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using DTypes = std::set<DType>;

class RandomTree {
 public:
  explicit RandomTree(std::uint32_t seed) : random_(seed) {}

  // A flat state_dict with up to three tensors of each type.
  Value make(const DTypes& dtypes) {
    Value root = Value::ordered_dict({});
    int number = 0;
    for (const DType dtype : dtypes) {
      for (std::uint32_t i = 0; i < 1 + pick(3); ++i) {
        const std::string name = "layer" + std::to_string(number++) + "." +
                                 (pick(2) == 0 ? "weight" : "0.bias");
        root.set(name, tensor(dtype));
      }
    }
    return root;
  }

  Tensor tensor(DType dtype) {
    std::vector<std::int64_t> sizes(1 + pick(3));
    std::int64_t numel = 1;
    for (std::int64_t& size : sizes) {
      size = 2 * pick(4);
      numel *= size;
    }
    const std::int64_t before = pick(3);
    const std::int64_t after = pick(3);
    std::string bytes(
        static_cast<std::size_t>(before + numel + after) *
            dtype_info(dtype).size,
        '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(pick(dtype == DType::kBool ? 2 : 256));
    }
    Tensor tensor{
        .dtype = dtype,
        .sizes = sizes,
        .strides = row_major_strides(sizes)};
    tensor.offset = before;
    tensor.storage = storage_of(std::move(bytes), dtype);
    tensor.requires_grad = pick(2) == 0;
    if (pick(2) == 0) {
      std::ranges::reverse(tensor.sizes);
      std::ranges::reverse(tensor.strides);
    }
    return tensor;
  }

 private:
  std::uint32_t pick(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_()) % below;
  }
  std::mt19937 random_;
};

// Loads keep pointing into the file system's memory.
class Disk {
 public:
  Result<Value> through(const FormatWriter& writer, const Value& root) {
    const std::string path = "f" + std::to_string(count_++);
    LOCKSTEP_TRY(save(
        path,
        root,
        {.format = std::string(writer.name), .clone_views = true},
        fs_));
    LOCKSTEP_ASSIGN(Checkpoint file, load(path, {}, fs_));
    return std::move(file.root);
  }

 private:
  MemoryFs fs_;
  int count_ = 0;
};

// What a writer takes; what it refuses it must name.
DTypes accepted(const FormatWriter& writer) {
  DTypes dtypes;
  for (const DTypeInfo& info : dtype_table()) {
    Disk disk;
    const Tensor tensor =
        tensor_of<char>(info.dtype, std::vector<char>(2 * info.size), {2});
    const auto value =
        disk.through(writer, Value::dict({{"the.name", tensor}}));
    if (value) {
      dtypes.insert(info.dtype);
      continue;
    }
    const std::string text = to_string(value.error());
    EXPECT_EQ(value.error().code, ErrorCode::kUnsupported) << text;
    EXPECT_THAT(text, testing::HasSubstr("the.name")) << writer.name;
  }
  return dtypes;
}

std::string digest_or_error(const Value& root) {
  const auto text = digest(root);
  return text ? *text : to_string(text.error());
}

class RoundTrip : public testing::TestWithParam<FormatWriter> {};

TEST_P(RoundTrip, KeepsEveryElementOfWhatItTakes) {
  const DTypes dtypes = accepted(GetParam());
  EXPECT_GT(dtypes.size(), 10U);
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Disk disk;
    const Value tree = RandomTree(seed).make(dtypes);
    const auto back = disk.through(GetParam(), tree);
    ASSERT_TRUE(back) << seed << ": " << to_string(back.error());
    EXPECT_EQ(digest_or_error(*back), digest_or_error(tree)) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats,
    RoundTrip,
    testing::ValuesIn(format_writers().begin(), format_writers().end()),
    [](const auto& writer) {
      std::string name(writer.param.name);
      std::erase(name, '-');
      return name;
    });

TEST(SaveBytes, GivesTheFileThatSaveWrites) {
  const Value tree = RandomTree(7).make(accepted(format_writers().front()));
  MemoryFs fs;
  ASSERT_TRUE(save("archive.pt", tree, {}, fs));
  const auto owner = std::make_shared<std::string>(save_bytes(tree).value());
  EXPECT_EQ(*owner, read_text(fs, "archive.pt").value());

  const std::weak_ptr<std::string> held = owner;
  auto file = load(make_source(as_byte_span(*owner), owner), "memory");
  EXPECT_EQ(digest_or_error(file.value().root), digest_or_error(tree));
  EXPECT_GT(held.use_count(), 1);
}

TEST(SaveBytes, RefusesWhatSaveRefuses) {
  const auto made = save_bytes(Value::dict({{"f", Object{.global = "a.B"}}}));
  ASSERT_FALSE(made);
  EXPECT_THAT(to_string(made.error()), testing::HasSubstr("root['f']"));
}

TEST(RoundTrips, PassThroughAllFormatsOneAfterTheOther) {
  const FormatWriter& pytorch = format_writers().front();
  DTypes common = accepted(pytorch);
  for (const FormatWriter& writer : format_writers()) {
    const DTypes taken = accepted(writer);
    std::erase_if(common, [&](DType dtype) { return !taken.contains(dtype); });
  }
  EXPECT_GE(common.size(), 10U);
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    Disk disk;
    const Value tree = RandomTree(seed).make(common);
    const std::string wanted = digest_or_error(tree);
    ASSERT_EQ(wanted.size(), 64U) << wanted;
    Value now = tree;
    for (const FormatWriter& writer : format_writers()) {
      for (const FormatWriter* step : {&writer, &pytorch}) {
        auto next = disk.through(*step, now);
        ASSERT_TRUE(next) << step->name << ": " << to_string(next.error());
        now = *std::move(next);
        EXPECT_EQ(digest_or_error(now), wanted) << step->name << " " << seed;
      }
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
