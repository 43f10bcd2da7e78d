// SPDX-License-Identifier: BSD-3-Clause
//
// The table of bad inputs (checkpoint_formats.md, section 14): one row per
// case, in files by topic. bad_input_test.cpp holds every row against the
// library and against the program.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::ckpt::bad_inputs {

/// How far a bad file gets.
enum class Outcome {
  /// It does not open; the program exits with the code of the error.
  kRefused,
  /// It opens; asking for the bytes fails, and `verify` names the damage.
  kDamaged,
  /// It opens and only `verify` finds fault.
  kVerifyFails,
  /// It opens with a warning; `verify --strict` exits with 1.
  kWarned,
  /// It opens and names what could run code: exit 1, or a refusal if asked.
  kOpaque,
  /// It opens; walking all of it exceeds a limit.
  kExpands,
  /// It reads well, and nothing in it is run.
  kRead,
};

/// One row. Aggregates with designated initializers keep it to a few lines.
struct BadInput {
  /// Number in section 14.
  int row = 0;
  /// Letters, digits and '_'; unique.
  std::string name = {};
  std::string bytes = {};
  Outcome outcome = Outcome::kRefused;
  /// "E_CRC", "W_TRAILING"; empty for kOpaque and kRead.
  std::string detail = {};
  ErrorCode code = ErrorCode::kCorrupt;
  /// Each must occur in the text of the error (kOpaque, kRead: in what the
  /// program prints).
  std::vector<std::string> says = {};
  std::optional<std::uint64_t> offset = {};
  /// Files beside the input: name and bytes.
  std::vector<std::pair<std::string, std::string>> beside = {};
  /// What is opened; "." for the folder itself.
  std::string path = "input.pt";
};

/// A file of testdata/corrupt or testdata/valid, with its folder.
std::string testdata(const std::string& file);

std::vector<BadInput> file_rows();
std::vector<BadInput> zip_rows();
std::vector<BadInput> record_rows();
std::vector<BadInput> tensor_rows();
std::vector<BadInput> pickle_rows();
std::vector<BadInput> opcode_rows();
std::vector<BadInput> safetensors_rows();
std::vector<BadInput> numpy_rows();
std::vector<BadInput> stream_rows();
std::vector<BadInput> layout_rows();
std::vector<BadInput> growth_rows();

/// Rows that need more than bytes: bad_paths_test.cpp has 67 to 69,
/// safetensors_index_test.cpp 63, dcp_test.cpp 65.
inline constexpr int kRowsOfPaths[] = {63, 65, 67, 68, 69};

/// For messages of the tests.
void PrintTo(const BadInput& input, std::ostream* out);

/// All tables, one after the other.
std::vector<BadInput> all_rows();

} // namespace lockstep::ckpt::bad_inputs
