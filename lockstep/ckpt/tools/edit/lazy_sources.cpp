// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/lazy_sources.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "lockstep/ckpt/tools/edit/float_cast.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::size_t kMadeBlockBytes = 128 << 10;

// Makes its bytes in blocks; keeps them only for who asks for all at once.
class MadeSource : public StorageSource {
 public:
  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (!is_loaded_) {
      bytes_.clear();
      LOCKSTEP_TRY(stream([this](ByteSpan block) {
        bytes_.insert(bytes_.end(), block.begin(), block.end());
        return Status();
      }));
      is_loaded_ = true;
    }
    return ByteSpan(bytes_);
  }

 private:
  std::mutex mutex_;
  bool is_loaded_ = false;
  std::vector<std::byte> bytes_;
};

class CastSource final : public MadeSource {
 public:
  CastSource(std::shared_ptr<Storage> inner, DType from, DType to)
      : inner_(std::move(inner)), from_(from), to_(to) {}

  Status stream(const BlockVisitor& visit) override {
    Scratch scratch;
    return inner_->source->stream(
        [&](ByteSpan block) { return cast_block(block, scratch, visit); });
  }

  [[nodiscard]] bool has_overflowed() const {
    return has_overflowed_;
  }

 private:
  struct Scratch {
    // Of an element that a block cuts.
    std::vector<std::byte> rest = {};
    std::vector<std::byte> out = {};
  };

  Status
  cast_block(ByteSpan block, Scratch& scratch, const BlockVisitor& visit) {
    const std::size_t width = dtype_info(from_).size;
    std::vector<std::byte>& rest = scratch.rest;
    while (!block.empty()) {
      if (rest.empty() && block.size() >= width) {
        const std::size_t whole =
            std::min(block.size(), kMadeBlockBytes) / width * width;
        LOCKSTEP_TRY(cast(block.first(whole), scratch.out, visit));
        block = block.subspan(whole);
        continue;
      }
      const auto part =
          block.first(std::min(block.size(), width - rest.size()));
      rest.insert(rest.end(), part.begin(), part.end());
      block = block.subspan(part.size());
      if (rest.size() == width) {
        LOCKSTEP_TRY(cast(rest, scratch.out, visit));
        rest.clear();
      }
    }
    return {};
  }

  Status
  cast(ByteSpan in, std::vector<std::byte>& out, const BlockVisitor& visit) {
    out.resize(in.size() / dtype_info(from_).size * dtype_info(to_).size);
    if (cast_floats(in, from_, out, to_)) {
      has_overflowed_ = true;
    }
    return visit(out);
  }

  std::shared_ptr<Storage> inner_;
  DType from_;
  DType to_;
  // Several threads may read.
  std::atomic<bool> has_overflowed_ = false;
};

class GatherSource final : public MadeSource {
 public:
  explicit GatherSource(Tensor view) : view_(std::move(view)) {}

  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_ASSIGN(const ByteSpan bytes, view_.storage->source->load());
    const std::size_t width = dtype_info(view_.dtype).size;
    const auto start = static_cast<std::size_t>(view_.offset) * width;
    const auto count = static_cast<std::size_t>(view_.numel());
    if (view_.is_contiguous()) {
      return visit(bytes.subspan(start, count * width));
    }
    std::vector<std::byte> block;
    block.reserve(kMadeBlockBytes);
    std::vector<std::int64_t> index(view_.sizes.size(), 0);
    std::int64_t at = view_.offset;
    for (std::size_t i = 0; i < count; ++i) {
      const auto element =
          bytes.subspan(static_cast<std::size_t>(at) * width, width);
      block.insert(block.end(), element.begin(), element.end());
      if (block.size() + width > kMadeBlockBytes) {
        LOCKSTEP_TRY(visit(block));
        block.clear();
      }
      step(index, at);
    }
    return block.empty() ? Status() : visit(block);
  }

 private:
  // The next element in row-major order.
  void step(std::vector<std::int64_t>& index, std::int64_t& at) const {
    for (std::size_t d = index.size(); d-- > 0;) {
      at += view_.strides[d];
      if (++index[d] < view_.sizes[d]) {
        return;
      }
      at -= view_.strides[d] * view_.sizes[d];
      index[d] = 0;
    }
  }

  Tensor view_;
};

} // namespace

std::shared_ptr<StorageSource>
cast_source(std::shared_ptr<Storage> inner, DType from, DType to) {
  return std::make_shared<CastSource>(std::move(inner), from, to);
}

bool has_overflowed(const StorageSource& source) {
  const auto* cast = dynamic_cast<const CastSource*>(&source);
  return cast != nullptr && cast->has_overflowed();
}

std::shared_ptr<StorageSource> gather_source(Tensor view) {
  return std::make_shared<GatherSource>(std::move(view));
}

} // namespace lockstep::ckpt::internal
