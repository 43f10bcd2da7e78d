// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that forward fills in: `forward(x, torch::Tensor& attention)`,
// `forward(x, std::vector<torch::Tensor>& features)`.
//
// Note [Arguments that forward fills in]
// On the CPU alone (DistributedDataParallel's too) forward gets the caller's
// variables themselves; the tensors that it puts there count as results, whose
// graph is looked at. Replicas on other devices, and several, get copies,
// each with its shard; whatever forward has put in place of a tensor of such a
// copy is joined like a result, with its gradient, and the caller's variable
// gets it. Tensors that it left alone stay the caller's. One device gives back
// the whole argument. Of several, a value (a number, a text), alone or beside
// tensors, differs from replica to replica, so one that changed is an error,
// and so is a pointer to tensors, to which all replicas would write. What
// cannot be compared (members that `Fields` does not name, classes of the
// user's) is warned of where forward takes a T&.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "lockstep/tensor/argument_values.h"
#include "lockstep/tensor/structure.h"

namespace lockstep::structure {

/// What one call returned: tensors, and their structure in words.
struct CallOutputs {
  TensorList tensors = {};
  std::string form = {};
};

/// Errors: throws kUnsupported: argument `place`, from 0, of forward.
[[noreturn]] void refuse_changed_value(std::size_t place);
[[noreturn]] void refuse_tensor_pointer(std::size_t place);

template <class F>
struct ParametersOf;
template <class R, class M, class... Ps>
struct ParametersOf<R (M::*)(Ps...)> {
  using Types = std::tuple<Ps...>;
};
template <class R, class M, class... Ps>
struct ParametersOf<R (M::*)(Ps...) const> : ParametersOf<R (M::*)(Ps...)> {};

/// Whether parameter `I` of `M::forward` is a `T&`; false where it is not one
/// function but several, or a template.
template <class M, std::size_t I>
constexpr bool is_reference_parameter() {
  if constexpr (requires {
                  typename std::tuple_element_t<
                      I,
                      typename ParametersOf<decltype(&M::forward)>::Types>;
                }) {
    using P = std::
        tuple_element_t<I, typename ParametersOf<decltype(&M::forward)>::Types>;
    return std::is_lvalue_reference_v<P> &&
           !std::is_const_v<std::remove_reference_t<P>>;
  } else {
    return false;
  }
}

template <class T>
inline constexpr bool kIsTensorPointer = false;
template <>
inline constexpr bool kIsTensorPointer<at::Tensor*> = true;
template <>
inline constexpr bool kIsTensorPointer<std::vector<at::Tensor>*> = true;

template <class T>
inline constexpr bool kIsWhole = false;
template <class T>
inline constexpr bool kIsWhole<Whole<T>> = true;

/// An argument that is a variable of the caller, which forward may change.
template <class Arg>
inline constexpr bool kIsVariable =
    std::is_lvalue_reference_v<Arg> &&
    std::is_same_v<std::remove_reference_t<Arg>, std::decay_t<Arg>> &&
    !kIsWhole<std::decay_t<Arg>>;

/// One call of forward of an `M`: see Note [Arguments that forward fills in].
/// Ownership: borrows the caller's arguments.
template <class M, class... Args>
class CallerArguments {
 public:
  using Inputs = std::tuple<std::decay_t<Args>...>;

  CallerArguments(
      bool is_direct,
      bool is_alone,
      std::remove_reference_t<Args>&... args)
      : is_direct_(is_direct), is_alone_(is_alone), args_(args...) {
    if (!is_alone) {
      each([&]<std::size_t... I>(std::index_sequence<I...>) {
        (check_pointer<I>(), ...);
      });
    }
  }

  /// What forward gets: the caller's variables, or those of a replica.
  std::tuple<std::decay_t<Args>&...> to_call(Inputs& own) {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<std::decay_t<Args>&...>(variable<I>(own)...);
    });
  }

  /// Adds what forward has put into `own`, which was `given` before, to the
  /// outputs of replica `index`. Threads: each replica calls it at once.
  /// Errors: throws kUnsupported for a changed value of one of several
  /// replicas.
  void collect(
      std::size_t index,
      const Inputs& own,
      const Inputs& given,
      CallOutputs& outputs) {
    if (index == 0) {
      results_ = outputs.tensors.size();
    }
    each([&]<std::size_t... I>(std::index_sequence<I...>) {
      (collect_one<I>(index, variable<I>(own), std::get<I>(given), outputs),
       ...);
      if (index == 0 && std::ranges::any_of(changes_, &Change::is_any)) {
        own_.emplace(variable<I>(own)...);
      }
    });
  }

  /// Gives the caller's variables their part of the joined outputs, and returns
  /// forward's results.
  TensorList take(TensorList outputs) {
    auto next = outputs.begin() + static_cast<std::ptrdiff_t>(results_);
    each([&]<std::size_t... I>(std::index_sequence<I...>) {
      (take_one<I>(next), ...);
    });
    outputs.resize(results_);
    return outputs;
  }

 private:
  template <std::size_t I>
  using Argument = std::tuple_element_t<I, std::tuple<Args...>>;

  /// Of replica 0: for each tensor of the argument the place of the caller's
  /// that it still is, or -1.
  struct Change {
    bool is_any = false;
    std::vector<std::ptrdiff_t> places = {};
  };

  template <class F>
  static auto each(const F& f) {
    return f(std::index_sequence_for<Args...>());
  }

  template <std::size_t I>
  void check_pointer() const {
    if constexpr (kIsTensorPointer<std::tuple_element_t<I, Inputs>>) {
      const std::tuple_element_t<I, Inputs> pointer = std::get<I>(args_);
      if (pointer != nullptr) {
        refuse_tensor_pointer(I);
      }
    }
  }

  /// `Own` is Inputs, const or not.
  template <std::size_t I, class Own>
  decltype(auto) variable(Own& own) {
    using Variable = std::remove_reference_t<decltype(std::get<I>(own))>;
    if constexpr (kIsVariable<Argument<I>>) {
      if (is_direct_) {
        return static_cast<Variable&>(std::get<I>(args_));
      }
    }
    return static_cast<Variable&>(std::get<I>(own));
  }

  template <class T>
  static Change change_of(const T& own, const T& given) {
    Change change;
    // With its namespace: `at::flatten` would take a tensor.
    const TensorList now = structure::flatten(own);
    const TensorList before = structure::flatten(given);
    // Names, too.
    change.is_any = now.size() != before.size() ||
                    structure::describe(own) != structure::describe(given);
    for (std::size_t k = 0; k < now.size(); ++k) {
      std::ptrdiff_t place = -1;
      for (std::size_t j = 0; j < before.size() && place < 0; ++j) {
        // The same place first: several may be the same tensor.
        const std::size_t at = (k + j) % before.size();
        place =
            now[k].is_same(before[at]) ? static_cast<std::ptrdiff_t>(at) : -1;
      }
      change.is_any = change.is_any || place != static_cast<std::ptrdiff_t>(k);
      change.places.push_back(place);
    }
    return change;
  }

  template <std::size_t I, class T>
  void collect_one(
      std::size_t index,
      const T& own,
      const T& given,
      CallOutputs& outputs) {
    if constexpr (!kIsVariable<Argument<I>>) {
      return;
    } else if constexpr (kHasTensors<T>) {
      Change change = change_of(own, given);
      const bool gives_values = is_alone_ && !is_direct_;
      change.is_any =
          change.is_any || (gives_values && !Values(own).is_empty());
      if (index == 0) {
        changes_[I] = change;
      }
      if (!is_alone_) {
        check_values<I>(own, given, change.is_any);
      }
      if (!change.is_any) {
        return;
      }
      outputs.form += ", argument " + std::to_string(I) + ": " + describe(own);
      const TensorList now = structure::flatten(own);
      for (std::size_t k = 0; k < now.size(); ++k) {
        outputs.form += " " + std::to_string(change.places[k]);
        if (change.places[k] < 0) {
          outputs.tensors.push_back(now[k]);
        }
      }
    } else if (!is_alone_) {
      check_values<I>(own, given, false);
    } else if (!is_direct_) { // else it is the caller's
      if constexpr (kIsComparable<T>) {
        changes_[I].is_any = is_other(own, given);
      } else {
        changes_[I].is_any = is_reference_parameter<M, I>();
      }
    }
  }

  /// Of one of several replicas: what is no tensor in an argument.
  template <std::size_t I, class T>
  void check_values(const T& own, const T& given, bool is_given_back) const {
    const Values now(own);
    if (now.is_other_than(Values(given))) {
      refuse_changed_value(I);
    }
    if (now.has_unknown() &&
        (is_given_back || is_reference_parameter<M, I>())) {
      TORCH_WARN_ONCE(
          "forward takes argument ",
          I,
          " as T&; on several devices each replica has a copy, and what "
          "forward writes to values in it is dropped, or that of the first is "
          "taken: return it as a tensor");
    }
  }

  template <std::size_t I>
  void take_one(TensorList::iterator& next) {
    using T = std::tuple_element_t<I, Inputs>;
    if constexpr (kIsVariable<Argument<I>> && std::is_copy_assignable_v<T>) {
      const Change& change = changes_[I];
      if (!change.is_any || !own_) {
        return;
      }
      T& target = std::get<I>(args_);
      T& source = std::get<I>(*own_);
      if constexpr (kHasTensors<T>) {
        // The caller's own variable was changed already.
        const TensorList left =
            structure::flatten(is_direct_ ? source : target);
        TensorList tensors;
        for (std::size_t k = 0; k < change.places.size(); ++k) {
          const std::ptrdiff_t place = change.places[k];
          const std::size_t at =
              is_direct_ ? k : static_cast<std::size_t>(place);
          tensors.push_back(place < 0 ? *next++ : left[at]);
        }
        target = rebuild(std::move(source), tensors);
      } else {
        target = source;
      }
    }
  }

  bool is_direct_;
  bool is_alone_;
  std::tuple<std::remove_reference_t<Args>&...> args_;
  std::size_t results_ = 0;
  std::optional<Inputs> own_ = {};
  std::array<Change, sizeof...(Args)> changes_ = {};
};

} // namespace lockstep::structure
