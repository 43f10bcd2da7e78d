// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;
using bad_inputs::put_ints;
using bad_inputs::tensor_pickle;

// A local header without content or directory.
std::string header(const std::string& name, std::uint16_t flags) {
  std::string bytes;
  put_le<std::uint32_t>(bytes, 0x04034b50);
  put_le<std::uint16_t>(bytes, 0);
  put_le<std::uint16_t>(bytes, flags);
  bytes.append(18, '\0');
  put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(name.size()));
  put_le<std::uint16_t>(bytes, 0);
  return bytes + name;
}

std::string cut_archive(std::size_t n) {
  return repeated(n / 40, [](std::size_t) { return header("a/data.pkl", 0); });
}
// What says where they end is missing.
std::string cut_streams(std::size_t n) {
  return repeated(n / 40, [](std::size_t) { return header("a/data.pkl", 8); });
}
std::string cut_records(std::size_t n) {
  return repeated(n / 40, [](std::size_t i) {
    return header("a/" + std::to_string(i), 8);
  });
}

std::string records(std::size_t n) {
  ZipBytes zip;
  zip.add("a/data.pkl", tensor_pickle());
  zip.add("a/data/0", "0123456789abcdef");
  for (std::size_t i = 0; i < n / 120; ++i) {
    zip.add("a/x" + std::to_string(i), "");
  }
  zip.add("a/version", "3\n");
  return zip.finish();
}

// Pickles in a row, behind a legacy checkpoint without tensors.
std::string legacy(const std::string& rest) {
  const Pickle magic = Pickle()
                           .op(0x8A)
                           .op(10)
                           .raw("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
                           .stop();
  return magic.bytes() + Pickle().raw("M\xe9\x03").stop().bytes() +
         Pickle().op('}').stop().bytes() + Pickle().op('}').stop().bytes() +
         Pickle().op(']').stop().bytes() + rest;
}
std::string tiny_pickles(std::size_t n) {
  return legacy(repeated(n / 2, [](std::size_t) { return "N."; }));
}
std::string tiny_names(std::size_t n) {
  return legacy(repeated(n / 6, [](std::size_t) { return "cm\nn\n."; }));
}

// Views of nearly all of one storage.
std::string views(std::size_t n) {
  const auto numel = static_cast<std::int64_t>(n / 8);
  Pickle pickle;
  pickle.storage("FloatStorage", "0", numel).put(0).op('0');
  pickle.global("torch._utils", "_rebuild_tensor_v2").put(1).op('0');
  pickle.op('}').mark();
  for (std::size_t i = 0; i < n / 200; ++i) {
    pickle.text(std::to_string(i)).get(1).mark().get(0);
    pickle.int8(static_cast<std::int64_t>(i));
    put_ints(pickle, {numel - static_cast<std::int64_t>(n / 200)});
    put_ints(pickle, {1}).op(0x89).hooks().op('t').op('R');
  }
  return checkpoint(
      pickle.op('u').stop().bytes(),
      {.data = std::string(static_cast<std::size_t>(4 * numel), 'd')});
}
// One element that is repeated.
std::string expanded(std::size_t n) {
  return checkpoint(tensor_pickle(
      {.size = {static_cast<std::int64_t>(n * n)}, .stride = {0}}));
}

std::string safetensors(std::size_t n) {
  std::string json = "{";
  for (std::size_t i = 0; i < n / 60; ++i) {
    json += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  json += "}";
  std::string bytes;
  put_le<std::uint64_t>(bytes, json.size());
  return bytes + json;
}

} // namespace

std::vector<HostileFile> hostile_archives() {
  return {
      {"cut archive", cut_archive},
      {"cut streams", cut_streams},
      {"cut records", cut_records},
      {"records", records},
      {"tiny pickles", tiny_pickles},
      {"tiny names", tiny_names},
      {"views", views},
      {"expanded view", expanded},
      {"safetensors header", safetensors}};
}

} // namespace lockstep::ckpt::growth
