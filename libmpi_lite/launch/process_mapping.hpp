// Which ranks share a host, as PMI-1 managers tell it under the key PMI_process_mapping. A block is
// (first host, number of hosts, ranks on each). For example, "(vector,(0,2,4),(2,1,8))" is 4 ranks
// on each of 2 hosts from host 0 on, then 8 ranks on host 2.
#pragma once

#include <string_view>
#include <vector>

namespace viaduct::mpi {

// The number of the host of each of the `size` ranks. Where the text has fewer ranks, it is applied
// again from its beginning. Throws SetupError if the text is not of that form.
std::vector<int> hosts_of_ranks(std::string_view mapping, int size);

}  // namespace viaduct::mpi
