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
