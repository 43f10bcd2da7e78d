// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/random_stream.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>

namespace lockstep::parallel {
namespace {

thread_local RandomStreamGuard* current_stream = nullptr;

// Names the generator, so that the draw is not taken for the replica's own.
std::uint64_t draw_seed() {
  const at::Tensor seed = at::randint(
      std::int64_t{1} << 31,
      {},
      at::detail::getDefaultCPUGenerator(),
      at::TensorOptions(at::kLong));
  return static_cast<std::uint64_t>(seed.item<std::int64_t>());
}

} // namespace

at::Generator PassStreams::generator(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (!seed_) {
    seed_ = draw_seed();
  }
  return at::detail::createCPUGenerator(*seed_ + index);
}

RandomStreamGuard::RandomStreamGuard(PassStreams& streams, std::size_t index)
    : streams_(streams), index_(index), outer_(current_stream) {
  current_stream = this;
}

RandomStreamGuard::~RandomStreamGuard() {
  current_stream = outer_;
}

std::optional<at::Generator> pick_generator(
    std::optional<at::Generator> given) {
  RandomStreamGuard* stream = current_stream;
  if (stream == nullptr || (given && given->defined())) {
    return given;
  }
  if (!stream->generator_) {
    stream->generator_ = stream->streams_.generator(stream->index_);
  }
  return stream->generator_;
}

} // namespace lockstep::parallel
