// SPDX-License-Identifier: BSD-3-Clause
//
// DTensors that PyTorch pickled: the whole ones are tensors like others, the
// others say which part they are, as PyTorch computes it.
#include "lockstep/ckpt/core/dtensor.h"

#include <cstring>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Extents = std::vector<std::int64_t>;

// A line of ckpt_dtensor.py.
struct DTensorRow {
  std::string key = {};
  std::string kind = {};
  Extents begin = {};
  Extents sizes = {};
  Extents whole = {};
};

Extents extents_in(const std::string& text) {
  Extents numbers;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string part; std::getline(in, part, ',');) {
    numbers.push_back(std::stoll(part));
  }
  return numbers;
}

// By the name of the file.
std::map<std::string, std::vector<DTensorRow>> rows_of(
    const std::string& folder) {
  std::map<std::string, std::vector<DTensorRow>> rows;
  for (const std::string& line :
       test::python_lines("ckpt_dtensor.py", {folder})) {
    std::istringstream in(line);
    std::string file;
    DTensorRow row;
    std::array<std::string, 3> numbers;
    in >> file >> row.key >> row.kind >> numbers[0] >> numbers[1] >> numbers[2];
    row.begin = extents_in(numbers[0]);
    row.sizes = extents_in(numbers[1]);
    row.whole = extents_in(numbers[2]);
    rows[file].push_back(std::move(row));
  }
  return rows;
}

void expect_whole(const Value& value, const DTensorRow& row) {
  const Tensor* tensor = value.as_tensor();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->sizes, row.whole);
  EXPECT_EQ(
      tensor->is_parameter,
      row.key == "parameter" || row.key == "frozen");
  EXPECT_EQ(tensor->requires_grad, row.key == "parameter");
  if (tensor->dtype == DType::kFloat32 && tensor->numel() > 1) {
    const auto bytes = tensor->storage->source->load().value();
    std::vector<float> values(static_cast<std::size_t>(tensor->numel()));
    ASSERT_EQ(bytes.size(), values.size() * sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], static_cast<float>(i));
    }
  }
}

void expect_part(const Value& value, const DTensorRow& row) {
  const auto layout = layout_tensor(value);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->layout, kDTensorLayout);
  EXPECT_EQ(*layout->sizes, row.whole);
  ASSERT_NE(layout->part("local"), nullptr);
  EXPECT_EQ(layout->part("local")->sizes, row.sizes);
  if (row.kind == "piece") {
    Extents end = row.begin;
    for (std::size_t d = 0; d < end.size(); ++d) {
      end[d] += row.sizes[d];
    }
    EXPECT_THAT(
        layout->place,
        StartsWith(piece_text(row.begin, end, row.whole) + ", "));
  } else {
    EXPECT_THAT(
        layout->place,
        StartsWith(
            row.kind == "sum" ? "a part of a sum, Partial()" : "a piece ["));
  }
}

class DTensorsOracle : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::ScratchDir>();
    files = rows_of(folder->path());
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  static Result<Checkpoint> read(const std::string& name) {
    return load(*folder / (name + ".pt"));
  }

  static std::unique_ptr<test::ScratchDir> folder;
  static std::map<std::string, std::vector<DTensorRow>> files;
};
std::unique_ptr<test::ScratchDir> DTensorsOracle::folder;
std::map<std::string, std::vector<DTensorRow>> DTensorsOracle::files;

TEST_F(DTensorsOracle, AreTheTensorsOrSayWhichPartTheyAre) {
  ASSERT_EQ(files.size(), 11U);
  for (const auto& [name, rows] : files) {
    SCOPED_TRACE(name);
    const auto file = read(name);
    ASSERT_TRUE(file) << to_string(file.error());
    std::size_t parts = 0;
    for (const DTensorRow& row : rows) {
      SCOPED_TRACE(row.key);
      const Value& value = *file->root.find(row.key);
      parts += row.kind == "whole" ? 0 : 1;
      row.kind == "whole" ? expect_whole(value, row) : expect_part(value, row);
    }
    std::size_t said = 0;
    for (const Warning& warning : file->warnings) {
      said += warning.name == "W_SHARD" ? 1 : 0;
    }
    EXPECT_EQ(said, parts);
    EXPECT_EQ(
        file->root.find("rows") == nullptr ||
            file->root.find("rows")->address() ==
                file->root.find("same")->address(),
        true);
  }
}

TEST_F(DTensorsOracle, AreNamedInWarningsAndLists) {
  const auto file = read("line2.1");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(
      to_string(file->warnings.at(0)),
      "W_SHARD: 'rows' is DTensor float32 [10, 3], rows 5..10 of 10, Shard(0): "
      "this file holds the part of one rank");
  EXPECT_THAT(
      to_string(file->warnings.back()),
      HasSubstr("W_DTENSOR: 3 DTensors are read as plain tensors"));
  std::vector<std::string> names;
  for_each_tensor(
      file->root,
      [&names](const std::string& name, const Tensor& /*tensor*/) {
        names.push_back(name);
      })
      .value();
  EXPECT_EQ(names.front(), "rows.local");
  const auto local = find_path(file->root, "rows.local");
  ASSERT_TRUE(local) << to_string(local.error());
  EXPECT_NE(local->as_tensor(), nullptr);
  EXPECT_EQ(
      describe(*file->root.find("columns")),
      "DTensor float32 [10, 3], [0:10, 2:3] of [10, 3], Shard(1)");
}

Value call(std::string_view name, std::vector<Value> args) {
  return Object{
      .global = std::string(name),
      .args = std::make_shared<Value>(Tuple{std::move(args)})};
}

// Of two elements; this rank has all of them if it is replicated.
Value dtensor(const std::string& placement) {
  const Value spec = Object{
      .global = "torch.distributed.tensor._dtensor_spec.DTensorSpec",
      .state = std::make_shared<Value>(Value::dict(
          {{"placements", Value::tuple({Object{.global = placement}})}}))};
  const Value type = Object{.global = "torch.distributed.tensor.DTensor"};
  return call(
      names::kRebuildFromType,
      {Object{.global = std::string(names::kRebuildWrapper)},
       type,
       Value::tuple(
           {type,
            DTypeValue{DType::kFloat32},
            Size{{2}},
            Size{{1}},
            0,
            None{},
            None{},
            false}),
       Value::dict({{"_local_tensor", floats({1, 2})}, {"_spec", spec}})});
}

Limits bounded(std::uint64_t made, std::uint64_t steps) {
  Limits limits;
  limits.max_made_bytes = made;
  limits.max_steps = steps;
  return counting(limits, 0);
}

Value many(const Value& value) {
  return List{std::vector<Value>(1000, value)};
}

TEST(DTensors, AreReadOnceHoweverOftenTheyAreShared) {
  const Limits limits = bounded(0, 10'000);
  Value root = many(dtensor("torch.distributed.tensor.Partial"));
  const auto warnings = take_whole_dtensors(root, bounds_of(limits));
  ASSERT_TRUE(warnings) << to_string(warnings.error());
  ASSERT_EQ(warnings->size(), 20U);
  EXPECT_THAT(warnings->back().text, HasSubstr("'19' is DTensor float32 [2]"));
  EXPECT_LT(limits.budget->steps(), 3000U);

  const auto refused = take_whole_dtensors(root, bounds_of(bounded(0, 100)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
}

// Each is a tensor of its own then.
TEST(DTensors, CountAsMadeForEachParameter) {
  const Value whole = dtensor("torch.distributed.tensor.Replicate");
  const auto parameters = [&whole](std::size_t count) {
    List list;
    for (std::size_t i = 0; i < count; ++i) {
      list.items.push_back(call(
          names::kRebuildParameter,
          {whole, true, Value::ordered_dict({})}));
    }
    return Value(std::move(list));
  };
  Value few = parameters(3);
  const auto warnings =
      take_whole_dtensors(few, bounds_of(bounded(10'000, 10'000)));
  ASSERT_TRUE(warnings) << to_string(warnings.error());
  EXPECT_NE(few.as_list()->items[2].as_tensor(), nullptr);

  Value crowd = parameters(1000);
  const auto refused =
      take_whole_dtensors(crowd, bounds_of(bounded(10'000, 10'000)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
}

TEST(DTensors, HaveClassesOfShortNames) {
  const std::string module(1000, 'm');
  const Value value = dtensor(module + ".Replicate");
  const auto known = read_dtensor(value.as_object()->args->as_tuple()->items);
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->is_whole);
  EXPECT_EQ(known->place, "Replicate()");
  const Value other = dtensor("torch." + module);
  const auto unknown = read_dtensor(other.as_object()->args->as_tuple()->items);
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->is_whole);
}

} // namespace
} // namespace lockstep::ckpt
