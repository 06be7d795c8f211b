// The header as C++ sees it: the same checks.
#include "header_test.c"
