// Tests of parts of the library: the predefined datatypes and operations are there before the
// first.
#pragma once

#include <gtest/gtest.h>

#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/core/data/op.hpp"

namespace viaduct::mpi {

class PredefinedObjects : public ::testing::Environment {
 public:
  void SetUp() override {
    define_datatypes();
    define_ops();
  }
};
inline const ::testing::Environment* const predefined_objects =
    ::testing::AddGlobalTestEnvironment(new PredefinedObjects);

}  // namespace viaduct::mpi
