// SPDX-License-Identifier: BSD-3-Clause
//
// A tensor is seen wherever a value can hold it, also in a place within a
// place. What the commands say of it is in tests/cli/tensor_slots_test.cpp.
#include "tests/ckpt/tensor_slots.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using slots::kSlots;
using slots::Slot;
using slots::SlotFile;
using testing::Contains;

// A file in memory, and what it holds.
struct Loaded {
  explicit Loaded(const slots::Put& put, const SlotFile& spec = {})
      : bytes(slots::slot_file(put, spec)),
        source(make_source(as_byte_span(bytes))) {}

  [[nodiscard]] Value root() const {
    return load(source, "slot.pt").value().root;
  }

  std::string bytes;
  std::shared_ptr<ByteSource> source;
};

// Names of the tensors that view the hidden storage.
std::vector<std::string> hidden_names(const Value& root) {
  std::vector<std::string> names;
  for_each_tensor(
      root,
      [&names](const std::string& name, const Tensor& tensor) {
        if (tensor.storage->key == "1") {
          names.push_back(name);
        }
      })
      .value();
  return names;
}

std::vector<std::string> lost_in(const SalvageReport& report) {
  std::vector<std::string> names;
  for (const LostPart& lost : report.lost) {
    names.push_back(lost.name);
  }
  return names;
}

std::vector<std::string> damaged_in(const VerifyReport& report) {
  std::vector<std::string> names;
  for (const Finding& finding : report.errors) {
    names.insert(names.end(), finding.tensors.begin(), finding.tensors.end());
  }
  return names;
}

std::vector<std::string> differing_in(const DiffReport& report) {
  std::vector<std::string> names;
  for (const DiffRow& row : report.rows) {
    names.push_back(row.name);
  }
  return names;
}

bool holds_hidden(const Value& root) {
  bool found = false;
  NodeWalk().run(root, [&found](const Value& node) {
    const Tensor* tensor = node.as_tensor();
    found |= tensor != nullptr && tensor->storage->key == "1";
    return true;
  });
  return found;
}

class Marker final : public TreeCopy {
 public:
  Marker() : TreeCopy("test") {}

 private:
  Status change(Value& copy) override {
    if (Tensor* tensor = copy.as_tensor()) {
      tensor->requires_grad = true;
    }
    return {};
  }
};

std::size_t tensors_in(const Value& root, bool are_marked) {
  std::size_t count = 0;
  NodeWalk().run(root, [&](const Value& node) {
    const Tensor* tensor = node.as_tensor();
    const bool counts =
        tensor != nullptr && tensor->requires_grad == are_marked;
    count += counts ? 1 : 0;
    return true;
  });
  return count;
}

void expect_copied(const Value& root) {
  const std::size_t marked = tensors_in(root, true);
  const std::size_t plain = tensors_in(root, false);
  const Value copy = Marker().copy(root).value();
  EXPECT_EQ(tensors_in(copy, true), marked + plain);
  EXPECT_EQ(tensors_in(copy, false), 0U);
  EXPECT_EQ(tensors_in(root, true), marked);
}

// What edits and writers make of it: it is there, or an error or a list of what
// is left out names it.
void expect_kept_or_said(const Value& root, const std::string& name) {
  const auto edited = rename_keys(root, RenameRule::parse("s/^w$/v/").value());
  ASSERT_TRUE(edited) << name;
  EXPECT_TRUE(holds_hidden(edited->root)) << name;

  if (const auto pickled = write_pickle(root)) {
    EXPECT_TRUE(std::ranges::any_of(pickled->storages, [](const auto& storage) {
      return storage->key == "1";
    })) << name;
  }
  if (const auto flat = flatten(root)) {
    EXPECT_TRUE(
        std::ranges::any_of(
            flat->tensors,
            [](const FlatTensor& flat_tensor) {
              return flat_tensor.tensor->storage->key == "1";
            }) ||
        std::ranges::count(unnamed_tensors(root).value(), name) == 1)
        << name;
  }
  const Value module = Object{
      .global = "net.Net",
      .state = std::make_shared<Value>(Value::dict(
          {{"_modules", Value::dict({})}, {"x", *root.find("x")}}))};
  const auto model = extract_model(module);
  ASSERT_TRUE(model) << name;
  EXPECT_THAT(model->left_out, Contains(testing::EndsWith(name.substr(2))));
}

void expect_seen(const slots::Put& put) {
  const Loaded file(put);
  const Value root = file.root();
  const auto names = hidden_names(root);
  ASSERT_EQ(names.size(), 1U);
  const std::string& name = names.front();
  const auto found = find_path(root, name);
  ASSERT_TRUE(found) << name;
  ASSERT_NE(found->as_tensor(), nullptr) << name;
  EXPECT_EQ(found->as_tensor()->storage->key, "1") << name;

  const Loaded other(put, {.bytes = "another 16 bytes"});
  EXPECT_EQ(
      digest(root).value() == digest(other.root()).value(),
      !tensors_beside_state(root)->empty())
      << name;
  EXPECT_THAT(
      differing_in(diff(root, other.root(), {}).value()),
      Contains(name));

  const Loaded damaged(put, {.is_damaged = true});
  EXPECT_THAT(
      damaged_in(verify(damaged.source, "slot.pt").value()),
      Contains(name));
  const auto report = salvage(damaged.source, "", {}, {}, real_fs());
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_THAT(lost_in(*report), Contains(name));
  expect_kept_or_said(root, name);
  expect_copied(root);
}

TEST(TensorSlots, AreSeen) {
  for (const Slot& slot : kSlots) {
    SCOPED_TRACE(slot.name);
    expect_seen(in_slot(slot));
  }
}

TEST(TensorSlots, AreSeenInEachOther) {
  for (const Slot& outer : kSlots) {
    for (const Slot& inner : kSlots) {
      SCOPED_TRACE(testing::Message() << inner.name << " in " << outer.name);
      expect_seen(in_slot(outer, in_slot(inner)));
    }
  }
}

// Every kind of child is a slot of some file.
TEST(TensorSlots, AreAllPlacesThatChildrenHave) {
  std::set<ChildSlot> met;
  for (const Slot& slot : kSlots) {
    const Loaded file(in_slot(slot));
    NodeWalk().run(file.root(), [&met](const Value& node) {
      for (std::size_t i = 0; i < child_count(node); ++i) {
        const Child child = child_of(node, i);
        if (holds_tensor(*child.value)) {
          met.insert(child.slot);
        }
      }
      return true;
    });
  }
  // Those of a tensor's quantizer are a part of it (quantizer_test.cpp).
  const auto last = static_cast<std::size_t>(ChildSlot::kQuantizer);
  EXPECT_EQ(met.size(), last);
  EXPECT_FALSE(met.contains(ChildSlot::kQuantizer));
}

// What a reader does not name comes behind what it names, so that the names
// and digests of files without such tensors are as before.
TEST(TensorSlots, HaveNamesOfTheirPlaces) {
  const auto name_in = [](std::string_view place) {
    const auto* const slot = std::ranges::find(kSlots, place, &Slot::name);
    return hidden_names(Loaded(in_slot(*slot)).root()).at(0);
  };
  EXPECT_EQ(name_in("element of a list"), "x.0");
  EXPECT_EQ(name_in("argument of a call"), "x.<args>.0");
  EXPECT_EQ(name_in("keyword argument of __new__"), "x.<args>.1.k");
  EXPECT_EQ(name_in("key of a dict"), "x.<keys>.0");
  EXPECT_EQ(name_in("part of a key"), "x.<keys>.0.1");
  EXPECT_EQ(name_in("element of a set"), "x.<set>.0");
  EXPECT_EQ(name_in("attribute of an OrderedDict"), "x.<attributes>.ema");
  EXPECT_EQ(name_in("attribute of a tensor"), "x.<attributes>.ema");
  EXPECT_EQ(
      name_in("buffer of a module that is not saved"),
      "x.<state>._buffers.b");
}

TEST(TensorSlots, OfAModuleThatIsNamedAlreadyAreNotNamedTwice) {
  const Value weight = floats({1, 2});
  Object module{.global = "net.Net"};
  module.state = std::make_shared<Value>(Value::dict(
      {{"_parameters", Value::dict({{"w", weight}})},
       {"_modules", Value::dict({})},
       {"all", Value::list({weight, floats({3})})}}));
  std::vector<std::string> names;
  for_each_tensor(
      Value(module),
      [&names](const std::string& name, const Tensor& /*tensor*/) {
        names.push_back(name);
      })
      .value();
  EXPECT_THAT(names, testing::ElementsAre("w", "<state>.all.1"));
}

TEST(TensorSlotsRepair, NamesTheSoundPartsOfALostObject) {
  const slots::Put pair = [](Pickle& pickle) {
    slots::put_class(pickle);
    slots::put_plain(pickle);
    slots::put_hidden(pickle);
    pickle.tuple(2).op('R');
  };
  const Loaded damaged(pair, {.is_damaged = true});
  const auto report = salvage(damaged.source, "", {}, {}, real_fs());
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_THAT(
      lost_in(*report),
      testing::ElementsAre("x.<args>.0", "x.<args>.1"));
  EXPECT_EQ(report->rescued, 1U);
}

TEST(TensorSlotsRepair, FindsNothingLostInAZipWithFolders) {
  const std::string pickle = slots::slot_pickle(slots::put_hidden);
  for (const bool is_damaged : {false, true}) {
    ZipBytes zip;
    zip.add("a/", "");
    zip.add("a/data.pkl", pickle);
    zip.add("a/data/", "");
    zip.add("a/data/0", "0123456789abcdef");
    EntryLies lies;
    lies.local_name = is_damaged ? "a/data/2" : "a/data/1";
    zip.add("a/data/1", "0123456789abcdef", lies);
    zip.add("a/version", "3\n");
    const std::string bytes = zip.finish();
    const auto report =
        salvage(make_source(as_byte_span(bytes)), "", {}, {}, real_fs());
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report->rescued, 2U);
    EXPECT_TRUE(report->lost_records.empty());
    EXPECT_FALSE(report->is_without_directory);
  }
}

} // namespace
} // namespace lockstep::ckpt
