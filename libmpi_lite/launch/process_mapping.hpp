// Which ranks share a host, as PMI-1 managers say it under the key PMI_process_mapping:
// "(vector,(0,2,4),(2,1,8))" is 4 ranks on each of 2 hosts from host 0 on, then 8 on host 2.
#pragma once

#include <string_view>
#include <vector>

namespace viaduct::mpi {

// The host of each of the `size` ranks; where the text has fewer, it starts anew. SetupError if it
// is not of that form.
std::vector<int> hosts_of_ranks(std::string_view mapping, int size);

}  // namespace viaduct::mpi
