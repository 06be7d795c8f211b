#include "sections.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // Errors of arguments are tested too; each call that must succeed is checked by what it did.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  p2p::modes();
  p2p::completion();
  p2p::probes();
  p2p::cancel();
  p2p::errors();
  p2p::load();
  p2p::children();
  return job::report();
}
