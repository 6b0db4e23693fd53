// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// WEFT_CHECK: what the model promises itself. Stays on in release builds: a broken promise stops the run
// with the place and the reason, since a wrong result is worse than none.
#include <cstdio>
#include <cstdlib>

namespace weft {

[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "weft: internal check failed at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace weft

#define WEFT_CHECK(condition, what)                                   \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::weft::check_failed(__FILE__, __LINE__, #condition ": " what); \
  } while (false)
