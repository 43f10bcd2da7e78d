// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/folder_facts.h"

namespace lockstep::ckpt {
namespace {

template <class Facts>
const Facts& known_or_read(
    std::map<std::string, Facts>& known,
    const std::string& folder,
    const std::function<Facts()>& read) {
  const auto [place, is_new] = known.try_emplace(folder);
  if (is_new) {
    place->second = read();
  }
  return place->second;
}

} // namespace

const std::vector<FolderFacts::Index>& FolderFacts::indices(
    const std::string& folder,
    const std::function<std::vector<Index>()>& read) {
  return known_or_read(indices_, folder, read);
}

const FolderFacts::Pieces& FolderFacts::pieces(
    const std::string& folder,
    const std::function<Pieces()>& read) {
  return known_or_read(pieces_, folder, read);
}

} // namespace lockstep::ckpt
