// SPDX-License-Identifier: BSD-3-Clause
//
// Names of programs and of their tensors: which may be there twice.
#include <list>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/formats/exported/program_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

class ExportedNames : public testing::Test {
 protected:
  [[nodiscard]] Result<Checkpoint> open() const {
    static std::list<std::string> kept; // sources do not own their bytes
    return load(
        make_source(as_byte_span(kept.emplace_back(archive_of(records_)))),
        "net.pt2");
  }

  Records records_ = program_records();
};

// A strict export gives a constant that it lifts the name of a buffer.
TEST_F(ExportedNames, ConstantsMayHaveTheNamesOfWeights) {
  records_[kConstantsRecord] = payload_table(
      payload_row("w", R"("path_name": "tensor_0", "use_pickle": false)"));
  records_["net/data/constants/tensor_0"] = std::string(8, '\3');
  const auto file = open();
  ASSERT_TRUE(file) << to_string(file.error());
  const ExportedModel& model = file->program->models.at(0);
  EXPECT_EQ(model.find_weight("w", false)->record, "data/weights/weight_0");
  EXPECT_EQ(model.find_weight("w", true)->record, "data/constants/tensor_0");
  const auto found = [&model](ExportedInputKind kind, bool is_persistent) {
    return model
        .find_weight(
            {.kind = kind, .target = "w", .is_persistent = is_persistent})
        ->is_constant;
  };
  EXPECT_FALSE(found(ExportedInputKind::kParameter, true));
  EXPECT_FALSE(found(ExportedInputKind::kBuffer, true));
  EXPECT_TRUE(found(ExportedInputKind::kBuffer, false));
  EXPECT_TRUE(found(ExportedInputKind::kTensorConstant, true));

  MemoryFs fs;
  const auto numbers = [](float value) {
    return Value::dict(
        {{"w", tensor_of<float>(DType::kFloat32, {value, value}, {2})}});
  };
  const Value other =
      Value::dict({{"state_dict", numbers(5)}, {"constants", numbers(6)}});
  ASSERT_TRUE(rewrite(*file, other, "out.pt2", {}, fs));
  const auto back = load("out.pt2", {}, fs);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(*digest(back->root), *digest(other));
}

TEST_F(ExportedNames, InputsAreFoundInTheirOwnTableAlone) {
  records_[kConstantsRecord] = records_[std::string(kTableRecord)];
  records_["net/data/constants/weight_0"] = std::string(8, '\3');
  records_[std::string(kTableRecord)] = payload_table("");
  EXPECT_EQ(open().error().detail, "E_NO_STORAGE");
}

TEST_F(ExportedNames, NamesOfProgramsAndWeightsAreThereOnce) {
  records_["net/serialized_exported_program.json"] = kProgramJson;
  EXPECT_EQ(open().error().detail, "E_PROGRAM");
  EXPECT_THAT(
      to_string(open().error()),
      HasSubstr("two programs are called 'model'"));

  // The pickle of an old archive may have 1 and '1' as keys.
  MemoryFs fs;
  const Value weights = Value::dict(
      {{"w", tensor_of<float>(DType::kFloat32, {1, 2}, {2})},
       {1, floats({1})},
       {"1", floats({2})}});
  ASSERT_TRUE(save("weights.pt", weights, {}, fs));
  records_ = program_records();
  records_.erase(std::string(kTableRecord));
  records_.erase(std::string(kWeightRecord));
  records_["net/data/weights/model.pt"] = read_text(fs, "weights.pt").value();
  EXPECT_EQ(open().error().detail, "E_PROGRAM");
  EXPECT_THAT(
      to_string(open().error()),
      HasSubstr("two weights are called '1'"));
}

} // namespace
} // namespace lockstep::ckpt
