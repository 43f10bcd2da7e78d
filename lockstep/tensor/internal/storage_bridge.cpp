// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/storage_bridge.h"

#include <cstring>

#include <c10/core/CPUAllocator.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// Widest element (complex128); a storage may be viewed with any dtype.
constexpr std::uintptr_t kAlignment = 16;

class LiveStorage : public ckpt::StorageSource {
 public:
  explicit LiveStorage(c10::Storage storage) : storage_(std::move(storage)) {}

  Result<ByteSpan> load() override {
    return ByteSpan(
        static_cast<const std::byte*>(storage_.data()),
        storage_.nbytes());
  }
  [[nodiscard]] const c10::Storage& storage() const noexcept {
    return storage_;
  }

 private:
  c10::Storage storage_;
};

using Owner = std::shared_ptr<ckpt::StorageSource>;

c10::DataPtr alias(ByteSpan bytes, const Owner& owner) {
  // Files are mapped privately: a write stays in this process.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  auto* data = const_cast<std::byte*>(bytes.data());
  auto context = std::make_unique<Owner>(owner);
  return {
      data,
      context.release(),
      [](void* held) {
        const std::unique_ptr<Owner> last(static_cast<Owner*>(held));
      },
      c10::Device(c10::kCPU)};
}

c10::DataPtr copy(ByteSpan bytes) {
  c10::DataPtr data = c10::GetCPUAllocator()->allocate(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(data.mutable_get(), bytes.data(), bytes.size());
  }
  return data;
}

} // namespace

std::shared_ptr<ckpt::Storage> to_file_storage(
    const c10::Storage& storage,
    ckpt::DType dtype) {
  auto out = std::make_shared<ckpt::Storage>();
  out->nbytes = storage.nbytes();
  out->dtype = dtype;
  out->source = std::make_shared<LiveStorage>(storage);
  return out;
}

c10::Storage to_torch_storage(const ckpt::Storage& storage) {
  if (const auto* live = dynamic_cast<LiveStorage*>(storage.source.get())) {
    return live->storage();
  }
  ByteSpan bytes;
  if (storage.source) {
    bytes = storage.source->load().value();
  }
  if (bytes.size() < storage.nbytes) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "tensor.read",
         .message = format(
             "storage '{}' is cut: expected {} bytes, got {}",
             escape(storage.key),
             storage.nbytes,
             bytes.size())});
  }
  bytes = bytes.first(storage.nbytes);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): address only
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const bool is_aligned = address % kAlignment == 0;
  return {
      c10::Storage::use_byte_size_t(),
      bytes.size(),
      is_aligned && !bytes.empty() ? alias(bytes, storage.source) : copy(bytes),
      /*allocator=*/nullptr,
      /*resizable=*/false};
}

} // namespace lockstep
