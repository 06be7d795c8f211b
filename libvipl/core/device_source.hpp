// Where devices come from: libibverbs, unless a test has put something else in its place.
#pragma once

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

vi::Provider& device_source();
// Before any NIC is open; it must live as long as the process.
void set_device_source(vi::Provider& provider);

}  // namespace viaduct::vipl
