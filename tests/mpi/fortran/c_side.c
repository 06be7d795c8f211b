/* The C part of the program: handles, statuses and attributes that Fortran passes to it. */
#include <mpi_fortran.h>
#include <string.h>

/* The size of a communicator and, by MPI_Comm_c2f, the same communicator. */
void c_comm_size_(MPI_Fint* comm, MPI_Fint* size, MPI_Fint* again) {
  MPI_Comm_size(MPI_Comm_f2c(*comm), size);
  *again = MPI_Comm_c2f(MPI_Comm_f2c(*comm));
}
void c_type_size_(MPI_Fint* type, MPI_Fint* size) {
  MPI_Type_size(MPI_Type_f2c(*type), size);
}
/* The tag of Fortran's status; -1: it is MPI_STATUS_IGNORE. */
void c_tag_(MPI_Fint* f_status, MPI_Fint* tag) {
  if (f_status == MPI_F_STATUS_IGNORE || (void*)f_status == (void*)MPI_F08_STATUS_IGNORE) {
    *tag = -1;
    return;
  }
  MPI_Status status;
  MPI_Fint back[MPI_F_STATUS_SIZE];
  MPI_Status_f2c(f_status, &status);
  MPI_Status_c2f(&status, back);
  *tag = memcmp(back, f_status, sizeof back) == 0 && back[MPI_F_TAG] == status.MPI_TAG
             ? status.MPI_TAG
             : -2;
}
/* The attribute that Fortran has set: C gets a pointer to its value. */
void c_attribute_(MPI_Fint* comm, MPI_Fint* keyval, MPI_Aint* value) {
  MPI_Aint* attribute = NULL;
  int flag = 0;
  MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &attribute, &flag);
  *value = flag ? *attribute : -1;
}
/* An attribute that C sets: Fortran gets the pointer as a number. */
void c_set_attribute_(MPI_Fint* comm, MPI_Fint* keyval) {
  MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *keyval, (void*)(MPI_Aint)123456);
}
/* What C says of an error: class and text, without the blanks of Fortran's strings. */
void c_error_(MPI_Fint* code, MPI_Fint* class_, char* text, size_t length) {
  char said[MPI_MAX_ERROR_STRING];
  int n;
  MPI_Error_class(*code, class_);
  MPI_Error_string(*code, said, &n);
  memset(text, ' ', length);
  memcpy(text, said, (size_t)n < length ? (size_t)n : length);
}
