// SPDX-License-Identifier: BSD-3-Clause
//
// Saving with `replace` off, in every format: what is there stays, a failure at
// any operation leaves nothing, and of two who race one wins.
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value two_weights() {
  return Value::dict(
      {{"a", tensor_of<float>(DType::kFloat32, {1, 2}, {2})},
       {"b", tensor_of<float>(DType::kFloat32, {3, 4}, {2})}});
}

// One way to save: a row of the writers, or several files.
struct Form {
  SaveOptions options = {};
  std::string path = {};
  /// The file that completes the checkpoint.
  std::string last = {};
};

std::vector<Form> forms() {
  std::vector<Form> forms;
  for (const FormatWriter& writer : format_writers()) {
    const bool is_folder = writer.name == "dcp";
    forms.push_back(
        {.options = {.format = std::string(writer.name), .replace = false},
         .path = "run/out",
         .last = is_folder ? "run/out/.metadata" : "run/out"});
  }
  forms.push_back(
      {.options = {.format = "safetensors", .replace = false, .shard_bytes = 8},
       .path = "run/out.safetensors",
       .last = "run/out.safetensors.index.json"});
  return forms;
}

MemoryFs empty_disk() {
  MemoryFs fs;
  fs.create_directories("run").value();
  return fs;
}

TEST(SaveNew, KeepsWhatIsThere) {
  for (const Form& form : forms()) {
    MemoryFs fs = empty_disk();
    ASSERT_TRUE(save(form.path, two_weights(), form.options, fs))
        << form.options.format;
    const std::string before = read_text(fs, form.last).value();
    const auto names = fs.list("run").value();
    const Status again = save(form.path, two_weights(), form.options, fs);
    ASSERT_FALSE(again) << form.options.format;
    EXPECT_EQ(again.error().detail, "E_EXISTS");
    EXPECT_EQ(read_text(fs, form.last).value(), before);
    EXPECT_EQ(fs.list("run").value(), names);
  }
}

TEST(SaveNew, LeavesNothingOfAFailure) {
  for (const Form& form : forms()) {
    MemoryFs counted = empty_disk();
    FaultFs counting(counted);
    ASSERT_TRUE(save(form.path, two_weights(), form.options, counting));
    for (std::uint64_t i = 0; i < counting.operations(); ++i) {
      MemoryFs disk = empty_disk();
      FaultFs faulty(disk, {.fail_at = i, .error_number = ENOSPC});
      static_cast<void>(save(form.path, two_weights(), form.options, faulty));
      if (disk.stat(form.last)) {
        const auto whole = load(
            form.options.shard_bytes == 0 ? form.path : form.last,
            {},
            disk);
        EXPECT_TRUE(whole) << form.options.format << " " << i;
      } else if (form.options.format == "dcp" && disk.stat(form.path)) {
        EXPECT_THAT(disk.list(form.path).value(), IsEmpty()) << i;
      } else {
        EXPECT_THAT(disk.list("run").value(), IsEmpty())
            << form.options.format << " " << i;
      }
    }
  }
}

TEST(SaveNew, OfTwoWhoRaceOneWins) {
  MemoryFs fs;
  const Status late = write_file_atomically(
      fs,
      "out",
      [&fs](WritableFile& file) {
        write_file_atomically(fs, "out", "first").value();
        return file.write(as_byte_span("second"));
      },
      {.replace = false});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().detail, "E_EXISTS");
  EXPECT_EQ(read_text(fs, "out").value(), "first");
  EXPECT_THAT(fs.list(".").value(), ElementsAre("out"));
}

} // namespace
} // namespace lockstep::ckpt
