// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that Python's script has broken: what is told when they are loaded
// or run, and that nothing happens.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <torch/types.h>

#include "lockstep/base/error.h"
#include "lockstep/program/program.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

// What loading and one forward pass throw.
std::string problem_of(
    const std::string& path,
    const ProgramOptions& options = {}) {
  try {
    Program net = load_program(path, options);
    net->forward(ProgramArguments{.args = {torch::ones({2, 4})}});
  } catch (const Exception& error) {
    return "[" + error.error().detail + "] " + error.what();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "none";
}

TEST(BadProgram, IsRefusedWithWhatIsWrong) {
  const std::map<std::string, std::vector<std::string>> rows = {
      {"unknown_operators",
       {"[E_OPERATOR]",
        "torch.ops.aten.lineal.default: unknown",
        "torch.ops.mylib.twice.default: not of ATen: name 'mylib'",
        "torch._functorch.predispatch._vmap: unknown"}},
      {"touches_files",
       {"[E_OPERATOR]", "from_file.default: refused: it maps or makes files"}},
      {"unchecked_indices",
       {"[E_OPERATOR]",
        "_index_put_impl_.default: refused: it does not check"}},
      {"missing_argument",
       {"node linear (torch.ops.aten.linear.default)",
        "argument 'weight' is missing"}},
      {"foreign_argument", {"it has an argument that its operator does not"}},
      {"wrong_kind", {"argument 'weight' of linear", "expected a number"}},
      {"wrong_type", {"argument 'dtype'", "the unknown element type 99"}},
      {"too_many_results", {"another number of results; expected 1, got 2"}},
      {"too_long_list",
       {"the operator gave 2 tensors; the graph expects 3", "node split"}},
      {"number_for_tensor", {"node sum_1"}},
      {"recurrent_sizes",
       {"the state of a recurrent layer: expected the sizes [1, 1, 4], got [1, "
        "2, 4]",
        "node lstm"}},
      {"no_heads", {"grouped attention without heads", "node attention"}},
      {"gradient_of_integers", {"'fc.bias' of int64 cannot have a gradient"}},
      {"huge_shape", {"node zeros"}},
      {"outside_of_memory", {"out of bounds for storage"}},
      {"other_operands",
       {"graph 'true_graph_0' takes another number of values; expected 1, got "
        "2"}},
      {"other_graph", {"an argument is no graph"}},
      {"graph_results", {"its graph has another number of results"}},
      {"pickled_weight", {"'fc.weight' is a pickle in the file"}},
      {"short_weight", {"[E_VIEW_BOUNDS]", "weight 'fc.weight'"}},
      {"odd_name", {"[E_PROGRAM]", "'fc..weight' is no path"}},
      {"custom_object", {"takes the custom object 'tokenizer'"}},
      {"unknown_buffer",
       {"[E_PROGRAM]",
        "the program changes 'nothing', which is no tensor among its buffers"}},
      {"unknown_input",
       {"[E_PROGRAM]",
        "the program changes 'nothing', which is no tensor among its inputs"}},
      {"leaf_arguments", {"[E_PROGRAM]", "in_spec is no pair"}},
      {"no_arguments", {"[E_PROGRAM]", "in_spec is no pair"}},
      {"number_for_type",
       {"argument 'dtype' of zeros", "expected an element type"}},
      {"number_for_layout",
       {"argument 'layout' of zeros", "expected a layout"}},
      {"unchecked_view",
       {"[E_OPERATOR]", "_reshape_alias.default: refused: it does not check"}},
      {"private_operator",
       {"[E_OPERATOR]", "_cummax_helper.default: refused: it is private"}},
      {"backward_operator",
       {"[E_OPERATOR]", "nll_loss_backward.default: refused: it is the back"}},
      {"packed_sequences",
       {"[E_OPERATOR]", "lstm.data: refused: it does not check"}},
      {"unchecked_sparse",
       {"[E_OPERATOR]", "crow_col_value_size: refused: it does not check"}},
      {"users_private", {"[E_OPERATOR]", "not of ATen: name 'mylib'"}},
      {"short_statistics",
       {"the running mean of a norm: expected 4 numbers, got the sizes [2]"}},
      {"gradient_result",
       {"gives gradients or changes the parameter 'fc.weight'"}},
  };
  const test::ScratchDir folder;
  const auto names = test::python_lines("program_bad.py", {folder.path()});
  EXPECT_EQ(names.size(), rows.size());
  for (const std::string& name : names) {
    const std::string problem = problem_of(folder / (name + ".pt2"));
    ASSERT_TRUE(rows.contains(name)) << name;
    for (const std::string& text : rows.at(name)) {
      EXPECT_THAT(problem, testing::HasSubstr(text)) << name;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "made"));
}

TEST(BadProgram, UsersMayAllowAnOperator) {
  const test::ScratchDir folder;
  test::python_lines("program_bad.py", {folder.path()});
  const Program net =
      load_program(folder / "touches_files.pt2", {.allow = {"aten.from_file"}});
  EXPECT_EQ(net->num_nodes(), 8U);
  // What is private in a library of the user's is the user's.
  EXPECT_THAT(
      problem_of(folder / "users_private.pt2", {.allow = {"mylib"}}),
      testing::HasSubstr("mylib._twice.default: unknown"));
}

// Longer: scripts/fuzz_programs.sh.
TEST(BadProgram, DamageAtRandomIsRefusedOrRuns) {
  const test::ScratchDir folder;
  const auto told = test::python_lines(
      "program_fuzz.py",
      {LOCKSTEP_PROGRAM_OUTCOMES, folder.path(), "1", "200"});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], testing::HasSubstr("load refused: "));
  EXPECT_THAT(told[0], testing::HasSubstr("run refused: "));
  EXPECT_THAT(told[0], testing::HasSubstr("run ran: "));
}

TEST(BadProgram, OtherFilesAreNoPrograms) {
  const test::ScratchDir folder;
  EXPECT_THAT(problem_of(folder / "none.pt2"), testing::HasSubstr("none.pt2"));
}

} // namespace
} // namespace lockstep
