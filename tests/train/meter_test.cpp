// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/meter.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(Meter, IsZeroBeforeTheFirstValue) {
  EXPECT_EQ(Meter().text(), "0.0000 (0.0000)");
}

TEST(Meter, MedianOfEvenCountIsTheLowerOne) {
  Meter meter;
  meter.add(4.0);
  meter.add(1.0);
  EXPECT_EQ(meter.median(), 1.0);
  meter.add(3.0);
  EXPECT_EQ(meter.median(), 3.0);
}

TEST(Meter, AverageWeighsBySamplesAndMedianForgets) {
  Meter meter;
  meter.add(100.0, 3);
  for (int i = 0; i < 20; ++i) {
    meter.add(1.0, 1);
  }
  EXPECT_EQ(meter.median(), 1.0);
  EXPECT_DOUBLE_EQ(meter.average(), 320.0 / 23.0);
}

} // namespace
} // namespace lockstep::train
