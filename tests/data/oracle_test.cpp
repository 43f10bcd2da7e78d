// SPDX-License-Identifier: BSD-3-Clause
//
// Samplers, loader and transforms against Python's, bit for bit. The scripts
// are tests/oracle/data_*.py.
#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/data/samplers.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

std::string file_bytes(const std::string& path) {
  return read_text(real_fs(), path).value();
}

void append(std::string& bytes, const at::Tensor& tensor) {
  ASSERT_TRUE(tensor.is_contiguous());
  bytes.append(
      static_cast<const char*>(tensor.const_data_ptr()),
      tensor.nbytes());
}

// Equal, or the place of the first difference: strings would fill the screen.
void expect_same(const std::string& ours, const std::string& python) {
  ASSERT_EQ(ours.size(), python.size());
  const auto [place, unused] = std::ranges::mismatch(ours, python);
  EXPECT_EQ(place - ours.begin(), std::ssize(ours)) << "first differing byte";
}

// One line of data_samplers.py, from its settings.
std::string sampler_line(
    std::int64_t size,
    std::int64_t epoch,
    const DistributedSamplerOptions& options) {
  DistributedSampler sampler(size, options);
  sampler.set_epoch(epoch);
  std::ostringstream line;
  line << size << ' ' << *options.num_replicas << ' ' << *options.rank << ' '
       << options.seed << ' ' << epoch << ' ' << options.shuffle << ' '
       << options.drop_last << " :";
  for (const std::int64_t index : sampler.indices()) {
    line << ' ' << index;
  }
  return line.str();
}

TEST(OracleSampler, DistributedSamplerEqualsPython) {
  std::istringstream lines(test::run_python("data_samplers.py"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    std::istringstream fields(line);
    std::int64_t size = 0;
    std::int64_t epoch = 0;
    DistributedSamplerOptions options{.num_replicas = 0, .rank = 0};
    fields >> size >> *options.num_replicas >> *options.rank >> options.seed >>
        epoch >> options.shuffle >> options.drop_last;
    ASSERT_EQ(sampler_line(size, epoch, options), line);
  }
  EXPECT_EQ(cases, 2660); // 10 sizes, 19 ranks, 2 x (6 shuffled + 1 plain)
}

TEST(OracleSampler, WeightedRandomSamplerEqualsPython) {
  std::istringstream lines(test::run_python("data_weighted.py"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    std::istringstream fields(line);
    std::int64_t seed = 0;
    std::int64_t size = 0;
    std::int64_t num_samples = 0;
    bool replacement = false;
    fields >> seed >> size >> num_samples >> replacement;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < size; ++i) {
      weights.push_back(static_cast<double>((7 * i + 3) % 11));
    }
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    WeightedRandomSampler sampler(weights, num_samples, replacement);
    std::ostringstream ours;
    ours << seed << ' ' << size << ' ' << num_samples << ' ' << replacement
         << " :";
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const std::int64_t index : sampler.next_epoch()) {
        ours << ' ' << index;
      }
    }
    EXPECT_EQ(ours.str(), line);
  }
  EXPECT_EQ(cases, 6);
}

TEST(OracleLoader, ShuffledRandomDatasetEqualsPython) {
  const test::ScratchDir folder;
  test::run_python("data_random.py", {folder.path()});
  for (const std::int64_t seed : {0, 1, 1234}) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    const auto data = std::make_shared<RandomDataset>(5, 100);
    RandomSampler sampler(data->size());
    Loader loader(data, {.batch_size = 30, .workers = 1});
    std::string ours;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(sampler.next_epoch(), epoch);
      while (const auto batch = loader.next()) {
        append(ours, batch->images);
      }
    }
    append(ours, torch::rand({1}));
    expect_same(ours, file_bytes(folder / (std::to_string(seed) + ".bin")));
  }
}

TEST(OracleLoader, ShuffledFashionMnistEqualsPython) {
  const test::ScratchDir folder;
  test::run_python("data_fashion.py", {folder.path()});
  const std::string python_images = file_bytes(folder / "images.bin");
  const std::string python_targets = file_bytes(folder / "targets.bin");
  const auto data = fashion_mnist();
  DistributedSampler sampler(data->size(), {.seed = 7});
  for (const std::int64_t workers : {0, 2}) {
    Loader loader(data, {.batch_size = 64, .workers = workers});
    std::string images;
    std::string targets;
    const auto take = [&] {
      const auto batch = loader.next();
      append(images, batch->images);
      append(targets, batch->targets);
    };
    for (const std::int64_t epoch : {0, 1}) {
      sampler.set_epoch(epoch);
      loader.start_epoch(sampler.indices(), epoch);
      for (int i = 0; i < 5; ++i) {
        take();
      }
    }
    loader.skip(loader.batches() - loader.position() - 1);
    take();
    EXPECT_FALSE(loader.next());
    expect_same(images, python_images);
    expect_same(targets, python_targets);
  }
}

TEST(OracleTransforms, NormalisingEqualsPython) {
  const test::ScratchDir folder;
  test::run_python("data_transforms.py", {folder.path()});
  std::vector<std::uint8_t> pixels(256);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  std::string ours;
  constexpr std::array kSettings{
      std::pair{0.2860F, 0.3530F},
      std::pair{0.1307F, 0.3081F},
      std::pair{0.5F, 0.5F},
      std::pair{0.485F, 0.229F}};
  for (const auto& [mean, std] : kSettings) {
    const Transform transform(
        {.channels = 1, .height = 16, .width = 16},
        {.mean = {mean}, .std = {std}});
    at::Tensor out = torch::empty({256});
    const std::vector<std::int64_t> only{0};
    transform.gather(
        pixels,
        only,
        0,
        {out.mutable_data_ptr<float>(), pixels.size()});
    append(ours, out);
  }
  expect_same(ours, file_bytes(folder / "normalise.bin"));
}

TEST(OracleTransforms, AugmentationEqualsPython) {
  const test::ScratchDir folder;
  test::run_python("data_transforms.py", {folder.path()});
  const auto data = fashion_mnist(
      "",
      {.transform = {
           .crop_padding = 4,
           .horizontal_flip = true,
           .seed = (std::int64_t{1} << 33) + 5}});
  Loader loader(data, {.batch_size = 200});
  std::vector<std::int64_t> indices(200);
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  std::string ours;
  for (const std::int64_t epoch :
       {std::int64_t{0}, (std::int64_t{1} << 32) + 1}) {
    loader.start_epoch(indices, epoch);
    append(ours, loader.next()->images);
  }
  expect_same(ours, file_bytes(folder / "augment.bin"));
}

// Type, shape and sum of a part of a batch, as data_loader.py prints them.
std::string part_text(const at::Tensor& part) {
  std::ostringstream text;
  text << c10::toString(part.scalar_type()) << " [";
  for (std::int64_t i = 0; i < part.dim(); ++i) {
    text << (i > 0 ? ", " : "") << part.size(i);
  }
  text << "] " << part.sum().item<double>();
  return text.str();
}

TEST(OracleLoader, BatchesAreThoseOfPython) {
  const auto samples = make_dataset(11, [](std::int64_t i) {
    return std::tuple{
        torch::full({2, 3}, static_cast<float>(i)),
        i,
        static_cast<double>(i) / 4,
        i % 2 == 0};
  });
  std::vector<std::string> ours;
  Loader loader(samples, {.batch_size = 4});
  for (const auto& [tensor, number, exact, flag] : loader) {
    ours.push_back(
        part_text(tensor) + ", " + part_text(number) + ", " + part_text(exact) +
        ", " + part_text(flag));
  }
  for (const bool shuffle : {false, true}) {
    torch::manual_seed(5);
    Loader plain(
        make_dataset(11, [](std::int64_t i) { return i; }),
        {.batch_size = 4, .shuffle = shuffle});
    std::ostringstream line;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const at::Tensor& batch : plain) {
        for (std::int64_t i = 0; i < batch.numel(); ++i) {
          line << batch[i].item<std::int64_t>() << ' ';
        }
      }
    }
    line << torch::randint(1000000, {1}, torch::kLong).item<std::int64_t>();
    ours.push_back(line.str());
  }
  EXPECT_EQ(ours, test::python_lines("data_loader.py"));
}

} // namespace
} // namespace lockstep
