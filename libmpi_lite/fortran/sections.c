// Array sections whose elements are apart, as buffers of procedures of module mpi_f08 that return
// before they are done. A single buffer with a count and a datatype is described by a datatype; the
// buffers of collectives, which have a part for each rank or are reduced, are refused.
//
// Uses PMPI_X, since a tool should not see calls that the program has not made.
#include <stdio.h>

#include "entries.h"

int is_contiguous(const CFI_cdesc_t* buffer) {
  CFI_index_t next = (CFI_index_t)buffer->elem_len;
  for (int i = 0; i < buffer->rank; ++i) {
    if (buffer->dim[i].extent == 0 || buffer->dim[i].extent == -1) return 1;  // -1: assumed size
    if (buffer->dim[i].extent > 1 && buffer->dim[i].sm != next) return 0;
    next *= buffer->dim[i].extent;
  }
  return 1;
}

// Whether items of the datatype lie one behind the other without gaps, and a whole number of them,
// which is returned, makes an element. 0: no.
static int items_of_element(const CFI_cdesc_t* buffer, MPI_Datatype datatype) {
  MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  if (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS ||
      PMPI_Type_get_extent_x(datatype, &lb, &extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent) != MPI_SUCCESS)
    return 0;
  const MPI_Count element = (MPI_Count)buffer->elem_len;
  if (size == 0 || lb != 0 || true_lb != 0 || extent != size || true_extent != size) return 0;
  return element % size == 0 && element / size <= INT_MAX ? (int)(element / size) : 0;
}

int section_type(const CFI_cdesc_t* buffer, MPI_Count count, int datatype) {
  const MPI_Datatype item = MPI_Type_fromint(datatype);
  const int each = items_of_element(buffer, item), rank = buffer->rank;
  MPI_Count items[CFI_MAX_RANK + 1] = {each};  // in all of the dimensions before
  int refused = each == 0;
  for (int d = 0; d < rank; ++d) {
    refused |= buffer->dim[d].extent > INT_MAX;
    items[d + 1] = items[d] * buffer->dim[d].extent;
  }
  if (refused || count > items[rank]) return MPI_Type_toint(MPI_DATATYPE_NULL);

  // For each dimension: all of the dimensions before it, with its stride for the extent.
  MPI_Datatype step[CFI_MAX_RANK], whole = MPI_DATATYPE_NULL;
  refused |= PMPI_Type_contiguous(each, item, &whole);
  for (int d = 0; d < rank; ++d) {
    step[d] = MPI_DATATYPE_NULL;
    refused |= PMPI_Type_create_resized(whole, 0, buffer->dim[d].sm, &step[d]);
    PMPI_Type_free(&whole);
    refused |= PMPI_Type_contiguous((int)buffer->dim[d].extent, step[d], &whole);
  }
  PMPI_Type_free(&whole);

  // The first items in the order of elements: so many steps of the last dimension, of the one
  // before within the next of these, and so on, and the items of an element that is not sent whole.
  MPI_Datatype parts[CFI_MAX_RANK + 1], made = MPI_DATATYPE_NULL;
  MPI_Aint places[CFI_MAX_RANK + 1], place = 0;
  int lengths[CFI_MAX_RANK + 1], n = 0;
  MPI_Count left = count;
  for (int d = rank - 1; d >= 0; --d) {
    lengths[n] = (int)(left / items[d]);
    parts[n] = step[d];
    places[n++] = place;
    place += left / items[d] * buffer->dim[d].sm;
    left %= items[d];
  }
  lengths[n] = (int)left;
  parts[n] = item;
  places[n++] = place;
  refused |= PMPI_Type_create_struct(n, lengths, places, parts, &made);
  for (int d = 0; d < rank; ++d) PMPI_Type_free(&step[d]);
  if (!refused) PMPI_Type_commit(&made);
  return MPI_Type_toint(made);
}

void free_section_type(int type) {
  MPI_Datatype made = MPI_Type_fromint(type);
  PMPI_Type_free(&made);
}

void refuse_section(const char* function, const int* comm, int* request, int* ierror) {
  static int code = MPI_SUCCESS;  // MPI_ERR_BUFFER with a sentence of its own
  char text[MPI_MAX_ERROR_STRING];
  if (code == MPI_SUCCESS && PMPI_Add_error_code(MPI_ERR_BUFFER, &code) != MPI_SUCCESS)
    code = MPI_ERR_BUFFER;
  if (code != MPI_ERR_BUFFER) {
    snprintf(
        text, sizeof text,
        "%s: a buffer is an array section whose elements are apart, which cannot be described "
        "here (MPI_SUBARRAYS_SUPPORTED is .FALSE.); use a contiguous array or a derived datatype",
        function);
    PMPI_Add_error_string(code, text);
  }
  *request = MPI_Request_toint(MPI_REQUEST_NULL);
  PMPI_Comm_call_errhandler(comm ? MPI_Comm_fromint(*comm) : MPI_COMM_SELF, code);
  give_code(ierror, code);
}
