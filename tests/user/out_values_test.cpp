// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers in arguments that forward fills in: one device gives them back,
// several refuse, or warn of what they cannot see.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

/// Numbers beside tensors, in the structures that hold both.
struct Noted {
  torch::Tensor hidden = {};
  std::int64_t rows = 0;
};
struct Loose {
  torch::Tensor hidden = {};
  std::int64_t rows = 0;
  double best = 0;
};
/// As large as its tensor and padding.
struct Flagged {
  torch::Tensor hidden = {};
  bool is_found = false;
};

} // namespace

template <>
struct Structure<Noted> : Fields<&Noted::hidden, &Noted::rows> {};
template <>
struct Structure<Loose> : Fields<&Loose::hidden> {};
template <>
struct Structure<Flagged> : Fields<&Flagged::hidden> {};

namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::error_of;
using testing::HasSubstr;

class OutValues : public test::OnDevices {
 protected:
  [[nodiscard]] Tensor batch() const {
    return here(torch::linspace(-1, 1, 24).view({6, 4}));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    OutValues,
    testing::Values("cpu", "sim:0", "cpu*2", "sim*2"),
    [](const auto& param) {
      std::string name = test::name_of_devices(param.param);
      std::erase(name, ':');
      return name;
    });

using Counted = std::pair<Tensor, std::int64_t>;

void note(Counted& out, const Tensor& /*x*/, std::int64_t rows) {
  out.second += rows;
}
void note(
    std::tuple<Tensor, double, std::string>& out,
    const Tensor& x,
    std::int64_t rows) {
  std::get<0>(out) = x * 2;
  std::get<1>(out) += static_cast<double>(rows);
  std::get<2>(out) += "x";
}
void note(
    std::variant<Tensor, std::int64_t>& out,
    const Tensor& /*x*/,
    std::int64_t rows) {
  out = rows;
}
void note(std::optional<Counted>& out, const Tensor& /*x*/, std::int64_t rows) {
  out->second += rows;
}
void note(
    std::map<std::string, Counted>& out,
    const Tensor& /*x*/,
    std::int64_t rows) {
  out["a"].second += rows;
}
void note(std::vector<Counted>& out, const Tensor& /*x*/, std::int64_t rows) {
  out[0].second += rows;
}
void note(Noted& out, const Tensor& x, std::int64_t rows) {
  out.hidden = x * 2;
  out.rows += rows;
}
void note(Loose& out, const Tensor& /*x*/, std::int64_t rows) {
  out.rows += rows;
  out.best = 2;
}
void note(Flagged& out, const Tensor& /*x*/, std::int64_t /*rows*/) {
  out.is_found = true;
}
void note(
    std::map<std::string, std::int64_t>& out,
    const Tensor& /*x*/,
    std::int64_t rows) {
  out["rows"] += rows;
}

template <class Out>
struct Notes : nn::Module {
  Tensor forward(const Tensor& x, Out& out) {
    if (writes) {
      note(out, x, x.size(0));
    }
    return x * 2;
  }
  bool writes = true;
};

// The text of the error or warning; empty where all came back.
template <class Out, class IsBack>
void expect_back(
    const char* devices,
    const Tensor& batch,
    const Out& begin,
    const IsBack& is_back) {
  auto net = std::make_shared<Notes<Out>>();
  auto reader = std::make_shared<Notes<Out>>();
  reader->writes = false;
  const auto factory_of = [](bool writes) {
    return [writes] {
      auto made = std::make_shared<Notes<Out>>();
      made->writes = writes;
      return made;
    };
  };
  DataParallel model(net, {.devices = devices, .factory = factory_of(true)});
  DataParallel reading(
      reader,
      {.devices = devices, .factory = factory_of(false)});
  Out out = begin;
  reading->forward(batch, out);
  EXPECT_FALSE(is_back(out));
  if (model->devices().size() == 1) {
    model->forward(batch, out);
    EXPECT_TRUE(is_back(out));
    return;
  }
  EXPECT_THAT(
      error_of([&] { model->forward(batch, out); }).message,
      HasSubstr("forward changed its argument 1"));
  EXPECT_FALSE(is_back(out)) << "nothing of one replica alone";
}

TEST_P(OutValues, NumbersBesideTensorsComeBackOrAreRefused) {
  const auto expect = [this]<class Out>(const Out& begin, const auto& is_back) {
    expect_back(GetParam(), batch(), begin, is_back);
  };
  const auto counts = [](const auto& pair) { return pair.second == 6; };
  expect(Counted(batch(), 0), counts);
  expect(std::tuple<Tensor, double, std::string>(), [](const auto& out) {
    return std::get<0>(out).defined() && std::get<1>(out) == 6 &&
           std::get<2>(out) == "x";
  });
  expect(std::variant<Tensor, std::int64_t>(batch()), [](const auto& out) {
    return out.index() == 1;
  });
  expect(std::optional<Counted>(Counted(batch(), 0)), [&](const auto& out) {
    return counts(*out);
  });
  expect(
      std::map<std::string, Counted>{{"a", {batch(), 0}}},
      [&](const auto& out) { return counts(out.at("a")); });
  expect(std::vector<Counted>{{batch(), 0}}, [&](const auto& out) {
    return counts(out[0]);
  });
  expect(Noted{.hidden = batch()}, [](const auto& out) {
    return out.rows == 6;
  });
  expect(std::map<std::string, std::int64_t>{{"rows", 0}}, [](const auto& out) {
    return out.at("rows") == 6;
  });
}

// What one device gives back; several warn that they do not.
template <class Out>
Out expect_back_or_warned(const char* devices, const Tensor& batch) {
  auto net = std::make_shared<Notes<Out>>();
  DataParallel model(net, {.devices = devices, .factory = [] {
                             return std::make_shared<Notes<Out>>();
                           }});
  Out out{.hidden = batch};
  const c10::WarningUtils::WarnAlways always(true);
  test::Warnings warnings;
  model->forward(batch, out);
  if (model->devices().size() > 1) {
    EXPECT_THAT(warnings.text, HasSubstr("forward takes argument 1 as T&"));
  }
  return out;
}

// Lockstep cannot see members that the Structure does not name.
TEST_P(OutValues, MembersWithoutANameComeBackOrAreWarnedOf) {
  const auto loose = expect_back_or_warned<Loose>(GetParam(), batch());
  const auto flagged = expect_back_or_warned<Flagged>(GetParam(), batch());
  if (std::string(GetParam()).find('*') == std::string::npos) {
    EXPECT_EQ(loose.rows, 6);
    EXPECT_EQ(loose.best, 2);
    EXPECT_TRUE(flagged.is_found);
  }
}

} // namespace
} // namespace lockstep
