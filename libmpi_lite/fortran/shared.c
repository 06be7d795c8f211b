// What several entries share: strings, which have a length and no final zero in Fortran;
// conversions.
#include "entries.h"

unsigned no_bits_of_numbers = ~0x3ffu;

const char* string_in(struct string* copy, const char* text, size_t length, int word) {
  while (length > 0 && text[length - 1] == ' ') --length;
  while (word && length > 0 && *text == ' ') ++text, --length;
  copy->text = length < sizeof copy->few ? copy->few : malloc(length + 1);
  if (!copy->text) return NULL;
  memcpy(copy->text, text, length);
  copy->text[length] = 0;
  return copy->text;
}

void string_out(const char* from, char* text, size_t length) {
  const size_t given = strlen(from), copied = given < length ? given : length;
  memcpy(text, from, copied);
  memset(text + copied, ' ', length - copied);
}

int no_memory(void) {
  MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
  return MPI_ERR_NO_MEM;
}

int ranks_of(int comm) {
  const MPI_Comm c = MPI_Comm_fromint(comm);
  int inter = 0, ranks = 0;
  if (c == MPI_COMM_NULL || MPI_Comm_test_inter(c, &inter) != MPI_SUCCESS) return 0;
  const int code = inter ? MPI_Comm_remote_size(c, &ranks) : MPI_Comm_size(c, &ranks);
  return code == MPI_SUCCESS ? ranks : 0;
}

int neighbors_of(int comm, int in) {
  const MPI_Comm c = MPI_Comm_fromint(comm);
  int topology = MPI_UNDEFINED, rank = 0, n = 0, out_degree = 0, in_degree = 0, weighted = 0;
  if (c == MPI_COMM_NULL || MPI_Topo_test(c, &topology) != MPI_SUCCESS) return 0;
  switch (topology) {
    case MPI_CART: return MPI_Cartdim_get(c, &n) == MPI_SUCCESS ? 2 * n : 0;
    case MPI_GRAPH:
      MPI_Comm_rank(c, &rank);
      return MPI_Graph_neighbors_count(c, rank, &n) == MPI_SUCCESS ? n : 0;
    case MPI_DIST_GRAPH:
      if (MPI_Dist_graph_neighbors_count(c, &in_degree, &out_degree, &weighted) != MPI_SUCCESS)
        return 0;
      return in ? in_degree : out_degree;
    default: return 0;
  }
}

int narrow(MPI_Aint address, int* integer, int code) {
  if (code != MPI_SUCCESS) return code;
  if (address >= INT_MIN && address <= INT_MAX) {
    *integer = (int)address;
    return MPI_SUCCESS;
  }
  *integer = MPI_UNDEFINED;
  MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_VALUE_TOO_LARGE);
  return MPI_ERR_VALUE_TOO_LARGE;
}
