// SPDX-License-Identifier: BSD-3-Clause
// main() of every unit test binary.
#include <gmock/gmock.h>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
