// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/norm_loops.h"

#include "lockstep/kernels/internal/lanes.h"

namespace lockstep::kernels {
namespace {

using internal::Lanes;
using internal::Part;

// Rows that are worked on together: what columns share is fetched once, and
// sums are added up in a register first.
constexpr int kTogether = 4;

// Calls `work.template rows<kRows>(part)` for each part of `kRows` rows. A
// functor's function is inlined like any; a lambda's could not be told to.
template <int kBytes, int kRows, class Work>
LOCKSTEP_INLINE void along_row(std::int64_t columns, Work& work) {
  constexpr std::int64_t kCount = Lanes<kBytes>::kCount;
  std::int64_t at = 0;
  for (; at + kCount <= columns; at += kCount) {
    work.template rows<kRows>(Part<kBytes, true>{.at = at});
  }
  if (at < columns) {
    work.template rows<kRows>(
        Part<kBytes, false>{.at = at, .count = columns - at});
  }
}

template <int kBytes, class Work>
LOCKSTEP_INLINE void along_rows(const TileSize& of, Work& work) {
  const TileSize size = of;
  work.stride = size.stride;
  std::int64_t row = 0;
  for (; row + kTogether <= size.rows; row += kTogether) {
    work.offset = row * size.stride;
    along_row<kBytes, kTogether>(size.columns, work);
  }
  for (; row < size.rows; ++row) {
    work.offset = row * size.stride;
    along_row<kBytes, 1>(size.columns, work);
  }
}

LOCKSTEP_INLINE void clear(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = 0;
  }
}

// Arguments are copied into the functors: the compiler then knows that no store
// to a tensor changes them. Sums over columns are added up where they are
// wanted, which is in the first cache; those over a plane in a register.

template <int kBytes, class T, bool kIsPlane>
struct SumWork {
  using Floats = typename Lanes<kBytes>::Floats;
  typename NormLoops<T>::Moments of;
  std::int64_t stride = 0;
  std::int64_t offset = 0;
  Floats total = {};

  template <int kRows, class P>
  LOCKSTEP_INLINE void rows(const P& part) {
    Floats sum = part.load(of.x + offset);
    for (int row = 1; row < kRows; ++row) {
      sum += part.load(of.x + offset + row * stride);
    }
    if constexpr (kIsPlane) {
      total += sum;
    } else {
      part.store(of.sums, part.load(of.sums) + sum);
    }
  }
};

template <int kBytes, class T, bool kIsPlane>
struct SquaresWork {
  using Floats = typename Lanes<kBytes>::Floats;
  typename NormLoops<T>::Moments of;
  float by_count = 0;
  std::int64_t stride = 0;
  std::int64_t offset = 0;
  Floats total = {};

  template <int kRows, class P>
  LOCKSTEP_INLINE void rows(const P& part) {
    const Floats mean = part.template parameter<kIsPlane>(of.sums) * by_count;
    Floats sum = {};
    for (int row = 0; row < kRows; ++row) {
      const Floats distance = part.load(of.x + offset + row * stride) - mean;
      sum += distance * distance;
    }
    if constexpr (kIsPlane) {
      total += sum * part.ones();
    } else {
      part.store(of.squares, part.load(of.squares) + sum);
    }
  }
};

template <int kBytes, class T, bool kIsPlane>
LOCKSTEP_INLINE void moments(
    const TileSize& size,
    const typename NormLoops<T>::Moments& of) {
  const std::int64_t results = kIsPlane ? 1 : size.columns;
  const std::int64_t values = kIsPlane ? size.columns : size.rows;
  clear(of.sums, results);
  clear(of.squares, results);
  SumWork<kBytes, T, kIsPlane> sum{.of = of};
  along_rows<kBytes>(size, sum);
  if constexpr (kIsPlane) {
    of.sums[0] = Lanes<kBytes>::sum(sum.total);
  }
  SquaresWork<kBytes, T, kIsPlane> squares{
      .of = of,
      .by_count = 1.0F / static_cast<float>(values)};
  along_rows<kBytes>(size, squares);
  if constexpr (kIsPlane) {
    of.squares[0] = Lanes<kBytes>::sum(squares.total);
  }
}

template <int kBytes, class T, bool kIsPlane>
struct NormaliseWork {
  using L = Lanes<kBytes>;
  typename NormLoops<T>::Normalise of;
  std::int64_t stride = 0;
  std::int64_t offset = 0;

  template <int kRows, class P>
  LOCKSTEP_INLINE void rows(const P& part) {
    const auto scale = part.template parameter<kIsPlane>(of.scale);
    const auto shift = part.template parameter<kIsPlane>(of.shift);
    const auto floor = L::all(of.floor);
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t at = offset + row * stride;
      auto y = part.load(of.x + at) * scale + shift;
      if (of.addend != nullptr) {
        y += part.load(of.addend + at);
      }
      y = y < floor ? floor : y; // NaN stays
      part.store(of.y + at, y);
    }
  }
};

template <int kBytes, class T, bool kIsPlane>
LOCKSTEP_INLINE void normalise(
    const TileSize& size,
    const typename NormLoops<T>::Normalise& of) {
  NormaliseWork<kBytes, T, kIsPlane> work{.of = of};
  along_rows<kBytes>(size, work);
}

/// What passes the ReLU, for some columns.
template <int kBytes, bool kIsPlane, class P>
struct Mask {
  using L = Lanes<kBytes>;
  using Floats = typename L::Floats;

  template <class Passed>
  LOCKSTEP_INLINE Mask(const P& columns, const Passed& of)
      : part(columns),
        scale(part.template parameter<kIsPlane>(of.scale)),
        shift(part.template parameter<kIsPlane>(of.shift)),
        floor(L::all(of.floor)) {}

  template <class Passed>
  LOCKSTEP_INLINE Floats passed(const Passed& of, std::int64_t at) const {
    const Floats before = part.load(of.x + at) * scale + shift;
    const Floats grad = part.load(of.grad + at);
    return before <= floor ? L::all(0) : grad;
  }

  P part;
  Floats scale;
  Floats shift;
  Floats floor;
};

template <int kBytes, class T, bool kIsPlane>
struct ReduceWork {
  using L = Lanes<kBytes>;
  using Floats = typename L::Floats;
  typename NormLoops<T>::Reduce of;
  std::int64_t stride = 0;
  std::int64_t offset = 0;
  Floats total = {};
  Floats total_product = {};

  // By the output, and keeps it.
  template <class P>
  LOCKSTEP_INLINE Floats kept(const P& part, std::int64_t at) {
    const Floats output = part.load(of.output + at);
    const Floats grad = part.load(of.passed.grad + at);
    const Floats result = output <= L::all(0) ? L::all(0) : grad;
    part.store(of.kept + at, result);
    return result;
  }

  template <int kRows, class P>
  LOCKSTEP_INLINE void rows(const P& part) {
    const Mask<kBytes, kIsPlane, P> mask(part, of.passed);
    const Floats mean = part.template parameter<kIsPlane>(of.mean);
    Floats sum = {};
    Floats product = {};
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t at = offset + row * stride;
      const Floats grad =
          of.output == nullptr ? mask.passed(of.passed, at) : kept(part, at);
      sum += grad; // 0 in lanes beyond
      product += grad * (part.load(of.passed.x + at) - mean);
    }
    if constexpr (kIsPlane) {
      total += sum;
      total_product += product;
    } else {
      part.store(of.sums, part.load(of.sums) + sum);
      part.store(of.products, part.load(of.products) + product);
    }
  }
};

template <int kBytes, class T, bool kIsPlane>
LOCKSTEP_INLINE void reduce(
    const TileSize& size,
    const typename NormLoops<T>::Reduce& of) {
  ReduceWork<kBytes, T, kIsPlane> work{.of = of};
  if constexpr (!kIsPlane) {
    clear(of.sums, size.columns);
    clear(of.products, size.columns);
  }
  along_rows<kBytes>(size, work);
  if constexpr (kIsPlane) {
    of.sums[0] = Lanes<kBytes>::sum(work.total);
    of.products[0] = Lanes<kBytes>::sum(work.total_product);
  }
}

template <int kBytes, class T, bool kIsPlane>
struct GradientWork {
  typename NormLoops<T>::Gradient of;
  std::int64_t stride = 0;
  std::int64_t offset = 0;

  template <int kRows, class P>
  LOCKSTEP_INLINE void rows(const P& part) {
    const Mask<kBytes, kIsPlane, P> mask(part, of.passed);
    const auto mean = part.template parameter<kIsPlane>(of.mean);
    const auto by_grad = part.template parameter<kIsPlane>(of.by_grad);
    const auto by_distance = part.template parameter<kIsPlane>(of.by_distance);
    const auto constant = part.template parameter<kIsPlane>(of.constant);
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t at = offset + row * stride;
      const auto grad = mask.passed(of.passed, at);
      const auto distance = part.load(of.passed.x + at) - mean;
      part.store(
          of.result + at,
          grad * by_grad + (distance * by_distance + constant));
    }
  }
};

template <int kBytes, class T, bool kIsPlane>
LOCKSTEP_INLINE void gradient(
    const TileSize& size,
    const typename NormLoops<T>::Gradient& of) {
  GradientWork<kBytes, T, kIsPlane> work{.of = of};
  along_rows<kBytes>(size, work);
}

// One function of an instruction set for one loop.
#define LOCKSTEP_LOOP(LOOP, ARGUMENTS)              \
  static void LOOP(                                 \
      const TileSize& size,                         \
      const typename NormLoops<T>::ARGUMENTS& of) { \
    if (size.is_plane) {                            \
      kernels::LOOP<kBytes, T, true>(size, of);     \
    } else {                                        \
      kernels::LOOP<kBytes, T, false>(size, of);    \
    }                                               \
  }

#define LOCKSTEP_LOOPS(NAME, BYTES, TARGET)                 \
  template <class T>                                        \
  struct NAME {                                             \
    static constexpr int kBytes = BYTES;                    \
    TARGET LOCKSTEP_LOOP(moments, Moments) TARGET           \
        LOCKSTEP_LOOP(normalise, Normalise) TARGET          \
        LOCKSTEP_LOOP(reduce, Reduce) TARGET LOCKSTEP_LOOP( \
            gradient,                                       \
            Gradient) static constexpr NormLoops<T> kTable{ \
            .moments = &moments,                            \
            .normalise = &normalise,                        \
            .reduce = &reduce,                              \
            .gradient = &gradient};                         \
  };

LOCKSTEP_LOOPS(Plain, 16, )
#ifdef __x86_64__
LOCKSTEP_LOOPS(Avx2, 32, LOCKSTEP_AVX2)
LOCKSTEP_LOOPS(Avx512, 64, LOCKSTEP_AVX512)
#else
template <class T>
using Avx2 = Plain<T>;
template <class T>
using Avx512 = Plain<T>;
#endif

} // namespace

template <class T>
std::vector<const NormLoops<T>*> usable_norm_loops() {
  return internal::usable_tables(
      &Avx512<T>::kTable,
      &Avx2<T>::kTable,
      &Plain<T>::kTable);
}

template <class T>
const NormLoops<T>& norm_loops() {
  static const NormLoops<T>& widest = *usable_norm_loops<T>().front();
  return widest;
}

template std::vector<const NormLoops<float>*> usable_norm_loops();
template std::vector<const NormLoops<Bfloat16Bits>*> usable_norm_loops();
template const NormLoops<float>& norm_loops();
template const NormLoops<Bfloat16Bits>& norm_loops();

} // namespace lockstep::kernels
