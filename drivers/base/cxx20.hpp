// Every installed C++ header includes this file, so that a program compiled for an older standard
// gets an error of one sentence instead of pages.
#pragma once

#if __cplusplus < 202002L
#error "Viaduct's C++ headers need C++20: compile with -std=c++20 or newer"
#include "the error above"  // there is no such file, so the compiler stops here
#endif
