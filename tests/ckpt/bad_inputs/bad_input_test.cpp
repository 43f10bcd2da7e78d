// SPDX-License-Identifier: BSD-3-Clause
//
// Every row of the table of bad inputs, through the library and through the
// program `lockstep`. In the preset `dev` sanitizers watch; the ctest entry
// bad_inputs_256mib runs the same with 256 MiB of addresses.
#include "tests/ckpt/bad_inputs/bad_input.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt::bad_inputs {

std::string testdata(const std::string& file) {
  return test::file_text("testdata/" + file);
}

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << "row " << input.row << ", " << input.name;
}

std::vector<BadInput> all_rows() {
  std::vector<BadInput> rows;
  for (auto* table :
       {file_rows,
        zip_rows,
        record_rows,
        tensor_rows,
        pickle_rows,
        opcode_rows,
        safetensors_rows,
        numpy_rows,
        stream_rows,
        layout_rows,
        growth_rows}) {
    for (BadInput& row : table()) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The input on disk, with what lies beside it.
class InputFiles {
 public:
  explicit InputFiles(const BadInput& input) {
    write("input.pt", input.bytes);
    for (const auto& [name, bytes] : input.beside) {
      write(name, bytes);
    }
    path_ = input.path == "." ? folder_.path() : folder_ / input.path;
  }
  [[nodiscard]] const std::string& path() const {
    return path_;
  }
  // True if the folder holds what it held, and nothing else.
  [[nodiscard]] bool is_untouched() const {
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_directory()) {
        continue;
      }
      ++files;
      const auto known = written_.find(entry.path().string());
      if (known == written_.end() ||
          known->second != test::file_text(known->first)) {
        return false;
      }
    }
    return files == written_.size();
  }

 private:
  void write(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    written_[path.string()] = bytes;
  }

  test::ScratchDir folder_;
  std::string path_;
  std::map<std::string, std::string> written_;
};

// The first error on the way to the last byte of an open file.
Status read_tensors(const Checkpoint& file) {
  Status result;
  LOCKSTEP_TRY(for_each_tensor(
      file.root,
      [&result](const std::string& /*name*/, const Tensor& tensor) {
        if (tensor.storage == nullptr || tensor.storage->source == nullptr) {
          return;
        }
        const auto bytes = tensor.storage->source->load();
        if (!bytes && result) {
          result = bytes.error();
        }
      }));
  return result;
}

// What an error must have, whatever its row.
void expect_error(const BadInput& input, const Error& error) {
  const std::string text = to_string(error);
  EXPECT_EQ(error.detail, input.detail) << text;
  EXPECT_EQ(error_info(error.code).name, error_info(input.code).name) << text;
  EXPECT_FALSE(error.op.empty()) << text;
  EXPECT_FALSE(error.hint.starts_with("--")) << "a program's flag: " << text;
  if (input.offset) {
    EXPECT_EQ(error.offset, input.offset) << text;
  }
  for (const std::string& piece : input.says) {
    EXPECT_THAT(text, HasSubstr(piece));
  }
}

bool warns_of(const Checkpoint& file, const std::string& detail) {
  return std::ranges::find(file.warnings, detail, &Warning::name) !=
         file.warnings.end();
}

class BadInputs : public testing::TestWithParam<BadInput> {
 protected:
  const BadInput& input_ = GetParam();
  InputFiles files_{input_};
};

// Opens, reads, walks and prints: the first error of all that.
Status use(const std::string& path, const LoadOptions& options) {
  LOCKSTEP_ASSIGN(const Checkpoint file, load(path, options));
  LOCKSTEP_TRY(read_tensors(file));
  LOCKSTEP_ASSIGN([[maybe_unused]] const Summary summary, summarize(file));
  EXPECT_FALSE(to_text(file.root).empty());
  return {};
}

TEST_P(BadInputs, Library) {
  for (const bool use_mmap : {false, true}) {
    const LoadOptions options{.use_mmap = use_mmap};
    const auto file = load(files_.path(), options);
    const Status status = use(files_.path(), options);
    switch (input_.outcome) {
      using enum Outcome;
      case kRefused:
        ASSERT_FALSE(file);
        expect_error(input_, file.error());
        break;
      case kDamaged:
      case kExpands:
        EXPECT_TRUE(file) << to_string(file.error());
        ASSERT_FALSE(status);
        expect_error(input_, status.error());
        break;
      default:
        ASSERT_TRUE(status) << to_string(status.error());
    }
  }
}

TEST_P(BadInputs, VerifyAndSafeLoading) {
  const auto report = verify(files_.path());
  const bool is_sound = report && report->is_sound();
  switch (input_.outcome) {
    using enum Outcome;
    case kRefused:
    case kDamaged:
      EXPECT_FALSE(is_sound);
      break;
    case kVerifyFails: {
      ASSERT_TRUE(report);
      ASSERT_FALSE(is_sound);
      EXPECT_EQ(report->errors[0].detail, input_.detail);
      for (const std::string& piece : input_.says) {
        EXPECT_THAT(report->errors[0].message, HasSubstr(piece));
      }
      break;
    }
    case kWarned: {
      const auto file = load(files_.path());
      ASSERT_TRUE(report && file);
      const bool is_reported =
          std::ranges::any_of(report->warnings, [this](const Finding& found) {
            return found.detail == input_.detail;
          });
      EXPECT_TRUE(is_reported || warns_of(*file, input_.detail));
      EXPECT_TRUE(is_sound);
      break;
    }
    case kOpaque: {
      const auto refused =
          load(files_.path(), {.refuse_unknown_globals = true});
      ASSERT_FALSE(refused);
      expect_error(input_, refused.error());
      break;
    }
    default:
      EXPECT_TRUE(load(files_.path()));
  }
}

// Arguments and exit status that go with an outcome.
struct Expected {
  std::string arguments = "ckpt ";
  int status = 0;
};

Expected expected_of(const BadInput& input) {
  switch (input.outcome) {
    using enum Outcome;
    case kRefused:
    case kExpands:
      return {.status = error_info(input.code).exit_code};
    case kDamaged:
    case kVerifyFails:
      return {.arguments = "ckpt verify ", .status = 3};
    case kWarned:
      return {.arguments = "ckpt verify --strict ", .status = 1};
    case kOpaque:
      return {.arguments = "ckpt scan ", .status = 1};
    default:
      return {};
  }
}

TEST_P(BadInputs, Program) {
  const Expected expected = expected_of(input_);
  const auto run = test::run_shell(
      LOCKSTEP_BINARY_DIR "/bin/lockstep " + expected.arguments + "'" +
      files_.path() + "'");
  const std::string all = run.out + run.err;
  EXPECT_EQ(run.status, expected.status) << all;
  const bool names_detail = input_.outcome != Outcome::kOpaque;
  EXPECT_THAT(all, HasSubstr(names_detail ? input_.detail : ""));
  for (const std::string& piece : input_.says) {
    EXPECT_THAT(all, HasSubstr(piece));
  }
  const bool is_printable = std::ranges::all_of(all, [](char c) {
    return c == '\n' || static_cast<unsigned char>(c) >= ' ';
  });
  EXPECT_TRUE(is_printable) << "control characters reach the terminal";
  EXPECT_EQ(all.find("Limits::"), std::string::npos) << all;
  EXPECT_TRUE(files_.is_untouched());
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    BadInputs,
    testing::ValuesIn(all_rows()),
    [](const auto& row) {
      return "Row" + std::to_string(row.param.row) + "_" + row.param.name;
    });

TEST(BadInputTable, HasEveryRow) {
  std::set<int> rows(std::begin(kRowsOfPaths), std::end(kRowsOfPaths));
  for (const BadInput& input : all_rows()) {
    rows.insert(input.row);
  }
  for (int row = 1; row <= 72; ++row) {
    EXPECT_TRUE(rows.contains(row)) << row;
  }
}

} // namespace
} // namespace lockstep::ckpt::bad_inputs
