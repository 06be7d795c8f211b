// How much shared memory a job takes on one node after all-to-alls: rings take memory as far as
// their readers fall behind, and none for core dumps. Usage: shm_memory BYTES TIMES KIB_PER_PAIR.
#include <mpi.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr const char* kSegment = "memfd:viaduct-mpi";

// Bytes of memory that this rank's own segment takes; each rank has one.
long segment_bytes() {
  namespace fs = std::filesystem;
  for (const auto& file : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(file, gone).string();
    struct stat status {};
    if (target.find(kSegment) != std::string::npos && ::stat(file.path().c_str(), &status) == 0)
      return static_cast<long>(status.st_blocks) * 512;
  }
  std::fprintf(stderr, "shm_memory: this rank has no segment; is shared memory off?\n");
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 0;
}

// Mapped segments, its own and others', that a core dump of this rank would read, and so fill.
long dumped_segments() {
  std::ifstream maps("/proc/self/smaps");
  long dumped = 0;
  bool segment = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(kSegment) != std::string::npos)
      segment = true;
    else if (segment && line.starts_with("VmFlags:")) {
      dumped += line.find(" dd") == std::string::npos;
      segment = false;
    }
  }
  return dumped;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: shm_memory BYTES TIMES KIB_PER_PAIR\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = std::atoi(argv[1]), times = std::atoi(argv[2]);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<char> out(static_cast<std::size_t>(bytes) * size), in(out.size());
  for (int i = 0; i < times; ++i)
    MPI_Alltoall(out.data(), bytes, MPI_CHAR, in.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const long mine[] = {segment_bytes(), dumped_segments()};
  long sum[2] = {};
  MPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const double pair = static_cast<double>(sum[0]) / (1024.0 * size * (size - 1));
  const bool small = pair <= std::atof(argv[3]), kept_out = sum[1] == 0;
  if (rank == 0) {
    std::printf(
        "# %d ranks, %d all-to-alls of %d bytes: %.1f MB of shared memory, %.1f KiB a pair\n", size,
        times, bytes, static_cast<double>(sum[0]) / 1e6, pair);
    std::printf("1..2\n%sok 1 - a pair of ranks takes %s KiB at most\n", small ? "" : "not ",
                argv[3]);
    std::printf("%sok 2 - a core dump reads no segment\n", kept_out ? "" : "not ");
  }
  MPI_Finalize();
  return small && kept_out ? 0 : 1;
}
