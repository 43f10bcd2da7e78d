// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of programs that may be broken: program_outcomes FILE... loads
// each, runs it forward and backward on inputs of the sizes that it names, and
// prints "FILE loaded", then "FILE ran" or "FILE refused WHY". An exception of
// another kind than the functions promise is "FILE unexpected WHY". For
// tests/oracle/program_fuzz.py, which watches for crashes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/program.h"

namespace {

namespace ls = lockstep;

// More would only take time.
constexpr std::int64_t kMaxSize = 64;

void tell(const char* file, std::string_view outcome, const char* why = "") {
  const std::string line =
      ls::format("{} {} {}", file, outcome, ls::escape(why, 300));
  std::puts(line.c_str());
  std::fflush(stdout);
}

ls::ProgramArguments arguments_for(const ls::Program& net) {
  ls::ProgramArguments arguments;
  for (const ls::ProgramInput& input : net->inputs()) {
    std::vector<std::int64_t> sizes;
    for (const ls::ProgramSize& size : input.sizes) {
      sizes.push_back(
          std::clamp<std::int64_t>(size.fixed.value_or(4), 0, kMaxSize));
    }
    arguments.args.emplace_back(torch::ones(sizes).to(input.dtype));
  }
  return arguments;
}

void run(ls::Program& net) {
  net->forward(arguments_for(net)).visit([](const at::Tensor& result) {
    if (result.requires_grad() && result.is_floating_point()) {
      result.sum().backward({}, /*retain_graph=*/true);
    }
  });
}

void attempt(const char* file) {
  ls::Program net = nullptr;
  try {
    net = ls::load_program(file);
    tell(file, "loaded");
  } catch (const ls::Exception& error) {
    tell(file, "refused", error.what());
    return;
  } catch (const std::exception& error) {
    tell(file, "unexpected", error.what());
    return;
  }
  try {
    run(net);
    tell(file, "ran");
  } catch (const ls::Exception& error) {
    tell(file, "refused", error.what());
  } catch (const c10::Error& error) {
    tell(file, "refused", error.what_without_backtrace());
  } catch (const std::logic_error& error) { // no operator throws one
    tell(file, "unexpected", error.what());
  } catch (const std::exception& error) {
    tell(file, "refused", error.what());
  }
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  std::for_each(argv + 1, argv + argc, attempt);
  return 0;
}
