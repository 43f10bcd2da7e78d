// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/byte_collectives.h"

#include <algorithm>
#include <cstring>
#include <ranges>

namespace lockstep::dist::shm {
namespace {

/// Parts begin on a cache line, which is a multiple of every element's size.
constexpr std::size_t kAlign = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

template <class T>
std::span<T> cut(std::span<T> bytes, std::size_t begin, std::size_t count) {
  begin = std::min(begin, bytes.size());
  return bytes.subspan(begin, std::min(count, bytes.size() - begin));
}

void copy(ConstBytes from, std::byte* to) {
  if (!from.empty()) { // memcpy takes no null
    std::memcpy(to, from.data(), from.size());
  }
}

/// At least one, so that ranks meet without data, too.
std::size_t count_pieces(std::size_t bytes, std::size_t piece) {
  return std::max<std::size_t>(1, (bytes + piece - 1) / piece);
}

/// Writes piece p while piece p - 1 is read.
template <class Write, class Read>
void stream(
    Communicator& communicator,
    std::size_t pieces,
    Write write,
    Read read) {
  for (std::size_t p = 0; p <= pieces; ++p) {
    if (p > 0) {
      communicator.meet();
      read(p - 1);
    }
    if (p < pieces) {
      write(p);
    }
  }
}

/// A box is divided into a part for each rank.
class Parts {
 public:
  explicit Parts(const Place& place)
      : place_(place),
        bytes_(
            Communicator::kBoxBytes / static_cast<std::size_t>(place.size) /
            kAlign * kAlign) {}

  /// Units: bytes of a part.
  [[nodiscard]] std::size_t bytes() const {
    return bytes_;
  }
  [[nodiscard]] std::byte* own(int part) const {
    return place_.communicator.own_box() + offset(part);
  }
  [[nodiscard]] const std::byte* of(int rank, int part) const {
    return place_.communicator.box_of(rank) + offset(part);
  }
  /// Joins what all ranks have written for this rank; its own is still in
  /// `own`. The result lies in this rank's part of its own box, which nobody
  /// writes for.
  [[nodiscard]] Bytes join(ConstBytes own_bytes, const Join& join) const {
    std::vector<const std::byte*> terms;
    terms.reserve(static_cast<std::size_t>(place_.size));
    for (int rank = 0; rank < place_.size; ++rank) {
      terms.push_back(
          rank == place_.rank ? own_bytes.data() : of(rank, place_.rank));
    }
    const Bytes result(own(place_.rank), own_bytes.size());
    if (!result.empty()) {
      join(terms, result);
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t offset(int part) const {
    return static_cast<std::size_t>(part) * bytes_;
  }

  Place place_;
  std::size_t bytes_;
};

/// The share of `part` in piece `p` of the data of an all-reduce.
Bytes share(Bytes data, const Parts& parts, int size, std::size_t p, int part) {
  const auto ranks = static_cast<std::size_t>(size);
  const Bytes piece =
      cut(data, p * parts.bytes() * ranks, parts.bytes() * ranks);
  const std::size_t step = round_up((piece.size() + ranks - 1) / ranks, kAlign);
  return cut(piece, static_cast<std::size_t>(part) * step, step);
}

/// Each rank joins its part, chunk by chunk while it is in the cache, for all.
void join_own_part(
    const Place& place,
    const std::vector<std::byte*>& of_rank,
    std::size_t bytes,
    const Join& join) {
  constexpr std::size_t kChunk = std::size_t{128} << 10;
  const auto ranks = static_cast<std::size_t>(place.size);
  const std::size_t part = round_up((bytes + ranks - 1) / ranks, kAlign);
  const std::size_t begin =
      std::min(bytes, static_cast<std::size_t>(place.rank) * part);
  const std::size_t end = std::min(bytes, begin + part);
  std::vector<const std::byte*> terms(ranks);
  for (std::size_t at = begin; at < end; at += kChunk) {
    std::ranges::transform(of_rank, terms.begin(), [&](const std::byte* data) {
      return data + at;
    });
    const Bytes sum(of_rank.front() + at, std::min(kChunk, end - at));
    join(terms, sum);
    for (std::byte* const data : of_rank | std::views::drop(1)) {
      copy(sum, data + at);
    }
  }
}

} // namespace

void broadcast(const Place& place, Bytes data, int source) {
  constexpr std::size_t kPiece = Communicator::kBoxBytes;
  stream(
      place.communicator,
      count_pieces(data.size(), kPiece),
      [&](std::size_t p) {
        if (place.rank == source) {
          copy(cut(data, p * kPiece, kPiece), place.communicator.own_box());
        }
      },
      [&](std::size_t p) {
        const Bytes piece = cut(data, p * kPiece, kPiece);
        if (place.rank != source) {
          copy({place.communicator.box_of(source), piece.size()}, piece.data());
        }
      });
}

void all_gather(
    const Place& place,
    ConstBytes own,
    const std::vector<Bytes>& outputs) {
  constexpr std::size_t kPiece = Communicator::kBoxBytes;
  stream(
      place.communicator,
      count_pieces(own.size(), kPiece),
      [&](std::size_t p) {
        copy(cut(own, p * kPiece, kPiece), place.communicator.own_box());
      },
      [&](std::size_t p) {
        for (int rank = 0; rank < place.size; ++rank) {
          const Bytes piece =
              cut(outputs[static_cast<std::size_t>(rank)], p * kPiece, kPiece);
          copy({place.communicator.box_of(rank), piece.size()}, piece.data());
        }
      });
}

// Three pieces are on their way: one is written, the one before it is joined,
// and the results of the one before that are read.
void all_reduce(const Place& place, Bytes data, const Join& join) {
  const Parts parts(place);
  const auto share_of = [&](std::size_t p, int part) {
    return share(data, parts, place.size, p, part);
  };
  const std::size_t pieces = count_pieces(
      data.size(),
      parts.bytes() * static_cast<std::size_t>(place.size));
  for (std::size_t p = 0; p < pieces + 2; ++p) {
    if (p > 0) {
      place.communicator.meet();
    }
    for (int part = 0; part < place.size; ++part) {
      if (p >= 2 && part != place.rank) {
        const Bytes result = share_of(p - 2, part);
        copy({parts.of(part, part), result.size()}, result.data());
      }
    }
    if (p >= 1 && p <= pieces) {
      const Bytes own = share_of(p - 1, place.rank);
      copy(parts.join(own, join), own.data());
    }
    for (int part = 0; part < place.size; ++part) {
      if (p < pieces && part != place.rank) {
        copy(share_of(p, part), parts.own(part));
      }
    }
  }
}

bool all_reduce_in_place(
    const Place& place,
    const Heaps& heaps,
    Bytes data,
    const Join& join) {
  constexpr std::uint64_t kElsewhere = UINT64_MAX;
  const std::uint64_t own = heaps.own->offset_of(data).value_or(kElsewhere);
  copy(std::as_bytes(std::span(&own, 1)), place.communicator.own_box());
  place.communicator.meet();
  std::vector<std::byte*> of_rank;
  for (int rank = 0; rank < place.size; ++rank) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, place.communicator.box_of(rank), sizeof offset);
    if (offset > Heap::bytes_for_all() - data.size()) {
      return false;
    }
    of_rank.push_back(
        rank == place.rank
            ? data.data()
            : heaps.all[static_cast<std::size_t>(rank)].data() + offset);
  }
  join_own_part(place, of_rank, data.size(), join);
  place.communicator.meet();
  return true;
}

void reduce_scatter(
    const Place& place,
    const std::vector<ConstBytes>& inputs,
    Bytes output,
    const Join& join) {
  const Parts parts(place);
  const auto piece_of = [&](std::size_t p, int part) {
    return cut(
        inputs[static_cast<std::size_t>(part)],
        p * parts.bytes(),
        parts.bytes());
  };
  stream(
      place.communicator,
      count_pieces(output.size(), parts.bytes()),
      [&](std::size_t p) {
        for (int part = 0; part < place.size; ++part) {
          if (part != place.rank) {
            copy(piece_of(p, part), parts.own(part));
          }
        }
      },
      [&](std::size_t p) {
        const Bytes result = parts.join(piece_of(p, place.rank), join);
        copy(result, cut(output, p * parts.bytes(), parts.bytes()).data());
      });
}

} // namespace lockstep::dist::shm
