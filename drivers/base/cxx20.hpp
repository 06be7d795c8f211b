// Included by every installed C++ header, so that an older standard is one sentence and not pages
// of errors.
#pragma once

#if __cplusplus < 202002L
#error "Viaduct's C++ headers need C++20: compile with -std=c++20 or newer"
#include "the error above"  // there is no such file: here the compiler stops
#endif
