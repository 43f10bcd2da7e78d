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
// user's) is warned of where forward takes a T&. A value that forward takes as
// a T or a const T& cannot change, unless its class has mutable members: the
// caller's own replica gets the caller's where the values are compared.
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

#pragma GCC visibility push(default)
namespace lockstep::structure {

/// What one call returned: tensors, and their structure in words.
struct CallOutputs {
  TensorList tensors = {};
  std::string form = {};
  /// As `number_in` the result.
  std::string number = {};
};

/// Errors: throws kUnsupported: argument `place`, from 0, of forward.
[[noreturn]] void refuse_changed_value(std::size_t place);
[[noreturn]] void refuse_tensor_pointer(std::size_t place);

/// Where forward runs.
struct Placement {
  /// On the CPU alone.
  bool is_direct = true;
  /// On one device.
  bool is_alone = true;
};

/// One call of forward of an `M`: see Note [Arguments that forward fills in].
/// Ownership: borrows the caller's arguments. They are copied for who could
/// change them, or has a shard in them, and for no one else.
template <class M, class... Args>
class CallerArguments {
 public:
  static constexpr std::size_t kCount = sizeof...(Args);

  explicit CallerArguments(
      Placement placement,
      std::remove_reference_t<Args>&... args)
      : is_direct_(placement.is_direct),
        is_alone_(placement.is_alone),
        args_(args...) {
    if (!is_alone_) {
      each([&]<std::size_t... I>(std::index_sequence<I...>) {
        (check_pointer<I>(), ...);
      });
    }
  }

  /// The tensors in all arguments.
  [[nodiscard]] TensorList tensors() const {
    TensorList all;
    each([&]<std::size_t... I>(std::index_sequence<I...>) {
      (add_tensors<I>(all), ...);
    });
    return all;
  }

  /// The module's forward with the caller's arguments.
  auto call_plain(M& module) {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      Copies own;
      (copy_one<I>(0, own), ...);
      return module.forward(argument<I>(own)...);
    });
  }

  /// Forward of replica `index` with `shards` in place of the tensors, in an
  /// argument that it can change in copies of its own. `outputs` are the
  /// result's tensors and what forward has put into arguments.
  /// Threads: each replica calls it at once.
  /// Errors: throws kUnsupported for a changed value of one of several
  /// replicas.
  auto call(
      M& module,
      std::size_t index,
      const TensorList& shards,
      CallOutputs& outputs) {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      Copies own;
      [[maybe_unused]] std::array<Before, kCount> before;
      [[maybe_unused]] auto next = shards.begin();
      (begin_one<I>(index, own, next, before[I]), ...);
      auto result = module.forward(argument<I>(own)...);
      outputs = {
          .tensors = structure::flatten(result),
          .form = structure::describe(result),
          .number = structure::number_in(result)};
      if (index == 0) {
        results_ = outputs.tensors.size();
      }
      (collect_one<I>(index, own, before[I], outputs), ...);
      return result;
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
  template <std::size_t I>
  using Value = std::decay_t<Argument<I>>;
  /// Those of one replica, where it does not get the caller's.
  using Copies = std::tuple<std::optional<std::decay_t<Args>>...>;

  template <std::size_t I>
  static constexpr bool kReads = kIsRead<M, I, Value<I>>;
  /// What forward puts there comes back.
  template <std::size_t I>
  static constexpr bool kIsFilled = kIsVariable<Argument<I>> && !kReads<I>;
  /// Whether the caller's own object can be given to forward.
  template <std::size_t I>
  static constexpr bool kCanBorrow =
      !std::is_array_v<std::remove_reference_t<Argument<I>>> &&
      (kReads<I> || kIsVariable<Argument<I>> ||
       (!std::is_reference_v<Argument<I>> && !std::is_const_v<Argument<I>>));

  /// Of a variable, before forward.
  struct Before {
    TensorList tensors = {};
    std::string form = {};
  };
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
  void add_tensors(TensorList& all) const {
    if constexpr (kHasTensors<Value<I>>) {
      const Value<I>& given = std::get<I>(args_);
      visit_tensors(given, [&all](const at::Tensor& t) { all.push_back(t); });
    }
  }

  template <std::size_t I>
  void check_pointer() const {
    if constexpr (kIsTensorPointer<Value<I>>) {
      const Value<I> pointer = std::get<I>(args_);
      if (pointer != nullptr) {
        refuse_tensor_pointer(I);
      }
    }
  }

  template <std::size_t I>
  [[nodiscard]] bool borrows(std::size_t index) const {
    if constexpr (!kCanBorrow<I>) {
      return false;
    } else if constexpr (kHasTensors<Value<I>>) {
      return is_direct_;
    } else {
      // Of a class of the program's, forward may change even a const object,
      // while other replicas copy it.
      return is_alone_ || (kReads<I> && index == 0 && kIsComparable<Value<I>>);
    }
  }

  template <std::size_t I>
  void copy_one(std::size_t index, Copies& own) const {
    if (!borrows<I>(index)) {
      std::get<I>(own).emplace(std::get<I>(args_));
    }
  }

  /// What forward gets.
  template <std::size_t I>
  auto& argument(Copies& own) {
    using Given = std::conditional_t<kReads<I>, const Value<I>, Value<I>>;
    if constexpr (kCanBorrow<I>) {
      if (!std::get<I>(own)) {
        return static_cast<Given&>(std::get<I>(args_));
      }
    }
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): `copy_one` made it
    return static_cast<Given&>(*std::get<I>(own));
  }

  template <std::size_t I>
  void begin_one(
      std::size_t index,
      Copies& own,
      TensorList::const_iterator& next,
      Before& before) {
    copy_one<I>(index, own);
    if constexpr (kHasTensors<Value<I>>) {
      if (auto& copy = std::get<I>(own); copy && !is_direct_) {
        visit_tensors(*copy, [&next](at::Tensor& t) { t = *next++; });
      }
      if constexpr (kIsFilled<I>) {
        before = {
            .tensors = structure::flatten(argument<I>(own)),
            .form = structure::describe(argument<I>(own))};
      }
    }
  }

  template <class T>
  static Change change_of(const T& own, const Before& before) {
    Change change;
    // With its namespace: `at::flatten` would take a tensor.
    const TensorList now = structure::flatten(own);
    const std::size_t count = before.tensors.size();
    // Names, too.
    change.is_any =
        now.size() != count || structure::describe(own) != before.form;
    for (std::size_t k = 0; k < now.size(); ++k) {
      std::ptrdiff_t place = -1;
      for (std::size_t j = 0; j < count && place < 0; ++j) {
        // The same place first: several may be the same tensor.
        const std::size_t at = (k + j) % count;
        place = now[k].is_same(before.tensors[at])
                    ? static_cast<std::ptrdiff_t>(at)
                    : -1;
      }
      change.is_any = change.is_any || place != static_cast<std::ptrdiff_t>(k);
      change.places.push_back(place);
    }
    return change;
  }

  template <std::size_t I>
  void collect_one(
      std::size_t index,
      Copies& copies,
      const Before& before,
      CallOutputs& outputs) {
    if constexpr (kIsFilled<I>) {
      const Value<I>& own = argument<I>(copies);
      bool is_any = false;
      if constexpr (kHasTensors<Value<I>>) {
        Change change = change_of(own, before);
        const bool gives_values = is_alone_ && !is_direct_;
        change.is_any =
            change.is_any || (gives_values && !Values(own).is_empty());
        is_any = change.is_any;
        if (is_any) {
          add_changed(I, own, change, outputs);
        }
        if (index == 0) {
          changes_[I] = std::move(change);
        }
      }
      if (!is_alone_) {
        check_values<I>(own, is_any);
      }
      if (index == 0 && is_any && !is_direct_) {
        std::get<I>(filled_) = std::move(std::get<I>(copies));
      }
    }
  }

  template <class T>
  static void add_changed(
      std::size_t place,
      const T& own,
      const Change& change,
      CallOutputs& outputs) {
    outputs.form += ", argument " + std::to_string(place) + ": ";
    outputs.form += structure::describe(own);
    const TensorList now = structure::flatten(own);
    for (std::size_t k = 0; k < now.size(); ++k) {
      outputs.form += " " + std::to_string(change.places[k]);
      if (change.places[k] < 0) {
        outputs.tensors.push_back(now[k]);
      }
    }
  }

  /// Of one of several replicas: what is no tensor in an argument.
  template <std::size_t I>
  void check_values(const Value<I>& own, bool is_given_back) const {
    const Values now(own);
    if (now.is_other_than(Values(std::get<I>(args_)))) {
      refuse_changed_value(I);
    }
    if (now.has_unknown() && (is_given_back || kIsReference<M, I>)) {
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
    using T = Value<I>;
    if constexpr (
        kIsFilled<I> && kHasTensors<T> && std::is_copy_assignable_v<T>) {
      const Change& change = changes_[I];
      if (!change.is_any) {
        return;
      }
      T& target = std::get<I>(args_);
      const TensorList left = structure::flatten(target);
      if (auto& filled = std::get<I>(filled_)) {
        target = std::move(*filled);
      }
      std::size_t k = 0;
      visit_tensors(target, [&](at::Tensor& tensor) {
        const std::ptrdiff_t place = change.places[k++];
        if (place < 0) {
          tensor = *next++;
        } else if (!is_direct_) { // else it is the caller's
          tensor = left[static_cast<std::size_t>(place)];
        }
      });
    }
  }

  bool is_direct_;
  bool is_alone_;
  std::tuple<std::remove_reference_t<Args>&...> args_;
  std::size_t results_ = 0;
  Copies filled_ = {};
  std::array<Change, kCount> changes_ = {};
};

} // namespace lockstep::structure
#pragma GCC visibility pop
