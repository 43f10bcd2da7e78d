// SPDX-License-Identifier: BSD-3-Clause
//
// What a loader makes of the samples of a batch, as Python's default_collate:
//   at::Tensor               a tensor with a dimension more in front
//   bool, int, float, ...    a tensor of as many numbers: bool, int64, float32,
//                            float64
//   std::string              std::vector<std::string>
//   tuple, pair, vector,     the same, part by part
//   array, map, unordered_map, Example of LibTorch's datasets
//   struct with a Structure  the same struct, tensor by tensor: all of its
//                            members must be named there
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/data/example.h>

#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// How samples of type `T` become one batch; specialise it for a type of one's
/// own: `using Batch = ...; static Batch of(const std::vector<const T*>&)`.
template <class T>
struct Collate;

/// What a batch of samples of type `T` is.
template <class T>
using Collated = typename Collate<T>::Batch;

namespace internal {

/// Errors: throws LibTorch's text if the shapes differ.
at::Tensor stack_samples(const std::vector<const at::Tensor*>& samples);
/// Errors: throws kMismatch: samples of one batch have as many parts.
[[noreturn]] void raise_other_parts(std::size_t first, std::size_t other);
[[noreturn]] void raise_no_key();
[[noreturn]] void raise_other_form(
    const std::string& first,
    const std::string& other);
/// Sample `place` is more than int64 holds.
[[noreturn]] void raise_too_large(std::size_t place, std::uint64_t number);
[[noreturn]] void raise_number(const std::string& number);
[[noreturn]] void raise_unnamed();

/// Looks whether a struct's Structure names all members.
struct NamesAll {
  void operator()(const at::Tensor& /*tensor*/) const {}
  void unnamed() const {
    raise_unnamed();
  }
  void number(const std::string& text) const {
    raise_number(text);
  }
};

/// The part of each sample that `part` picks.
template <class T, class Part>
auto parts_of(const std::vector<const T*>& samples, const Part& part) {
  std::vector<decltype(&part(*samples.front()))> parts;
  parts.reserve(samples.size());
  for (const T* sample : samples) {
    parts.push_back(&part(*sample));
  }
  return parts;
}

template <class T>
auto collate(const std::vector<const T*>& samples) {
  return Collate<T>::of(samples);
}

template <std::size_t I, class T>
auto collate_part(const std::vector<const T*>& samples) {
  return collate(parts_of(samples, [](const T& sample) -> const auto& {
    return std::get<I>(sample);
  }));
}

/// Sequences of one type of elements.
template <class T, class Result>
Result collate_sequence(const std::vector<const T*>& samples, Result batch) {
  const std::size_t size = samples.front()->size();
  for (const T* sample : samples) {
    if (sample->size() != size) {
      raise_other_parts(size, sample->size());
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    batch[i] = collate(parts_of(samples, [i](const T& sample) -> const auto& {
      return sample[i];
    }));
  }
  return batch;
}

template <class T, class Result>
Result collate_map(const std::vector<const T*>& samples) {
  Result batch;
  for (const auto& [key, value] : *samples.front()) {
    batch.emplace(
        key,
        collate(
            parts_of(samples, [&key, &samples](const T& sample) -> const auto& {
              const auto found = sample.find(key);
              if (found == sample.end() ||
                  sample.size() != samples.front()->size()) {
                raise_no_key();
              }
              return found->second;
            })));
  }
  return batch;
}

} // namespace internal

template <>
struct Collate<at::Tensor> {
  using Batch = at::Tensor;
  static Batch of(const std::vector<const at::Tensor*>& samples) {
    return internal::stack_samples(samples);
  }
};

template <class T>
  requires std::is_arithmetic_v<T>
struct Collate<T> {
  using Batch = at::Tensor;
  static Batch of(const std::vector<const T*>& samples) {
    using Number = std::conditional_t<
        std::same_as<T, bool> || std::floating_point<T>,
        std::conditional_t<std::same_as<T, long double>, double, T>,
        std::int64_t>;
    Batch batch = at::empty(
        {std::ssize(samples)},
        c10::CppTypeToScalarType<Number>::value);
    auto* numbers = batch.mutable_data_ptr<Number>();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if constexpr (std::unsigned_integral<T>) {
        if (static_cast<std::int64_t>(*samples[i]) < 0) {
          internal::raise_too_large(i, *samples[i]);
        }
      }
      numbers[i] = static_cast<Number>(*samples[i]);
    }
    return batch;
  }
};

template <>
struct Collate<std::string> {
  using Batch = std::vector<std::string>;
  static Batch of(const std::vector<const std::string*>& samples) {
    Batch batch;
    for (const std::string* sample : samples) {
      batch.push_back(*sample);
    }
    return batch;
  }
};

template <class... Ts>
struct Collate<std::tuple<Ts...>> {
  using Batch = std::tuple<Collated<Ts>...>;
  static Batch of(const std::vector<const std::tuple<Ts...>*>& samples) {
    return [&samples]<std::size_t... I>(std::index_sequence<I...> /*of*/) {
      return Batch(internal::collate_part<I>(samples)...);
    }(std::index_sequence_for<Ts...>());
  }
};

template <class A, class B>
struct Collate<std::pair<A, B>> {
  using Batch = std::pair<Collated<A>, Collated<B>>;
  static Batch of(const std::vector<const std::pair<A, B>*>& samples) {
    return {
        internal::collate_part<0>(samples),
        internal::collate_part<1>(samples)};
  }
};

template <class T>
struct Collate<std::vector<T>> {
  using Batch = std::vector<Collated<T>>;
  static Batch of(const std::vector<const std::vector<T>*>& samples) {
    return internal::collate_sequence(samples, Batch(samples.front()->size()));
  }
};

/// Its elements are no objects.
template <>
struct Collate<std::vector<bool>> {
  using Batch = std::vector<at::Tensor>;
  static Batch of(const std::vector<const std::vector<bool>*>& samples) {
    std::vector<std::deque<bool>> copies;
    std::vector<const std::deque<bool>*> pointers;
    copies.reserve(samples.size());
    for (const std::vector<bool>* sample : samples) {
      copies.emplace_back(sample->begin(), sample->end());
      pointers.push_back(&copies.back());
    }
    return internal::collate_sequence(pointers, Batch(copies.front().size()));
  }
};

template <class T, std::size_t N>
struct Collate<std::array<T, N>> {
  using Batch = std::array<Collated<T>, N>;
  static Batch of(const std::vector<const std::array<T, N>*>& samples) {
    return internal::collate_sequence(samples, Batch());
  }
};

template <class K, class V>
struct Collate<std::map<K, V>> {
  using Batch = std::map<K, Collated<V>>;
  static Batch of(const std::vector<const std::map<K, V>*>& samples) {
    return internal::collate_map<std::map<K, V>, Batch>(samples);
  }
};

template <class K, class V>
struct Collate<std::unordered_map<K, V>> {
  using Batch = std::unordered_map<K, Collated<V>>;
  static Batch of(const std::vector<const std::unordered_map<K, V>*>& samples) {
    return internal::collate_map<std::unordered_map<K, V>, Batch>(samples);
  }
};

template <class D, class T>
struct Collate<torch::data::Example<D, T>> {
  using Sample = torch::data::Example<D, T>;
  using Batch = torch::data::Example<Collated<D>, Collated<T>>;
  static Batch of(const std::vector<const Sample*>& samples) {
    return {
        internal::collate(internal::parts_of(
            samples,
            [](const Sample& sample) -> const D& { return sample.data; })),
        internal::collate(internal::parts_of(
            samples,
            [](const Sample& sample) -> const T& { return sample.target; }))};
  }
};
template <class D>
struct Collate<torch::data::Example<D, torch::data::example::NoTarget>> {
  using Sample = torch::data::Example<D, torch::data::example::NoTarget>;
  using Batch =
      torch::data::Example<Collated<D>, torch::data::example::NoTarget>;
  static Batch of(const std::vector<const Sample*>& samples) {
    return {internal::collate(internal::parts_of(
        samples,
        [](const Sample& sample) -> const D& { return sample.data; }))};
  }
};

/// Structs of the user's. Errors: throws kInvalidArgument if their Structure
/// leaves members out, which would be those of the first sample, and for a
/// number beside tensors, which would be, too; kMismatch for samples of other
/// structures.
template <class T>
struct Collate {
  static_assert(
      std::is_class_v<T> && kIsJoinable<T>,
      "the loader does not know how to put samples of this type together: name "
      "all members, which hold tensors, by template <> struct "
      "lockstep::Structure<MyType> : lockstep::Fields<&MyType::image, ...> {}; "
      "or say it in a lockstep::Collate<MyType>");
  using Batch = T;
  static Batch of(const std::vector<const T*>& samples) {
    if constexpr (requires { Structure<T>::as_sample(*samples.front()); }) {
      std::deque<T> own;
      std::vector<const T*> pointers;
      for (const T* sample : samples) {
        pointers.push_back(&own.emplace_back(Structure<T>::as_sample(*sample)));
      }
      return stacked(pointers);
    } else {
      return stacked(samples);
    }
  }

 private:
  static Batch stacked(const std::vector<const T*>& samples) {
    structure::visit_tensors(*samples.front(), internal::NamesAll());
    const std::string form = structure::describe(*samples.front());
    std::vector<TensorList> columns;
    for (const T* sample : samples) {
      if (structure::describe(*sample) != form) {
        internal::raise_other_form(form, structure::describe(*sample));
      }
      const TensorList tensors = structure::flatten(*sample);
      columns.resize(std::max(columns.size(), tensors.size()));
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        columns[i].push_back(tensors[i]);
      }
    }
    TensorList batch;
    for (const TensorList& column : columns) {
      batch.push_back(internal::stack_samples(pointers_to(column)));
    }
    return structure::rebuild(*samples.front(), batch);
  }
  static std::vector<const at::Tensor*> pointers_to(const TensorList& tensors) {
    std::vector<const at::Tensor*> pointers;
    for (const at::Tensor& tensor : tensors) {
      pointers.push_back(&tensor);
    }
    return pointers;
  }
};

} // namespace lockstep
#pragma GCC visibility pop
