// What tests say to null_verbs.cpp and hear from it.
#pragma once

#include <infiniband/verbs.h>

namespace viaduct::vipl::test {

struct NullVerbs {
  int max_sge_rd = 0;       // as the device says; 0: it does not
  ibv_qp_attr connected{};  // what the last queue pair got that was made ready to receive
};
inline NullVerbs null_verbs;

}  // namespace viaduct::vipl::test
