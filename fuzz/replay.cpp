// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a fuzz target over files instead of random bytes, so that every compiler
// and every test run repeats the known inputs: --target=NAME FOLDER...
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n);

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  std::size_t files = 0;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{
          std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
      // A heap block of exactly this size: one byte too far is noticed.
      const std::basic_string<std::uint8_t> exact(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files == 0 ? 1 : 0;
}
