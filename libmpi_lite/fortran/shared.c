// What several entries share: strings, which have a length and no final zero in Fortran;
// conversions; array sections.
#include <stdio.h>

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

int is_contiguous(const CFI_cdesc_t* buffer) {
  CFI_index_t next = (CFI_index_t)buffer->elem_len;
  for (int i = 0; i < buffer->rank; ++i) {
    if (buffer->dim[i].extent == 0 || buffer->dim[i].extent == -1) return 1;  // -1: assumed size
    if (buffer->dim[i].extent > 1 && buffer->dim[i].sm != next) return 0;
    next *= buffer->dim[i].extent;
  }
  return 1;
}

void refuse_section(const char* function, const int* comm, int* request, int* ierror) {
  static int code = MPI_SUCCESS;  // MPI_ERR_BUFFER with a sentence of its own
  char text[MPI_MAX_ERROR_STRING];
  if (code == MPI_SUCCESS && MPI_Add_error_code(MPI_ERR_BUFFER, &code) != MPI_SUCCESS)
    code = MPI_ERR_BUFFER;
  if (code != MPI_ERR_BUFFER) {
    snprintf(
        text, sizeof text,
        "%s: a buffer is an array section whose elements are apart (MPI_SUBARRAYS_SUPPORTED is "
        ".FALSE.); use a contiguous array, or a derived datatype",
        function);
    MPI_Add_error_string(code, text);
  }
  *request = MPI_Request_toint(MPI_REQUEST_NULL);
  MPI_Comm_call_errhandler(comm ? MPI_Comm_fromint(*comm) : MPI_COMM_SELF, code);
  give_code(ierror, code);
}
