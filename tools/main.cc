// SPDX-License-Identifier: BSD-3-Clause
#include "tools/commands.h"
#include "tools/run.h"

int main(int argc, char** argv) { return weft::run_program(argc, argv, weft::run_fabric); }
