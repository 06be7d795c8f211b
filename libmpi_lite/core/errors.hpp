// Error classes and codes with their texts (MPI 5.0, sections 9.4 and 9.5). Every predefined class
// is also a code of its own class; programs add classes, codes of any class, and texts. State is
// global to the process and may be used before MPI_Init.
#pragma once

#include <string>

namespace viaduct::mpi {

// Whether `code` is an error class or code at this moment.
bool is_error_code(int code);
// A name for messages, for any number: "MPI_ERR_RANK"; "error class 16390" for one that the program
// has added; "error 99" if there is no such code.
std::string error_name(int code);
// The class of a code; its text, which is empty for an added code without one. Throw Error
// (MPI_ERR_ARG) if there is no such code.
int error_class(int code);
std::string error_text(int code);

// Return the new class or code. Throw Error if all numbers are used up, or if `error_class` is no
// error class.
int add_error_class();
int add_error_code(int error_class);
// Sets the text of an added class or code. Throws Error for others, and for a text of
// MPI_MAX_ERROR_STRING characters or more.
void add_error_string(int code, const std::string& text);
// Throw Error for predefined ones, for a class that still has codes, and for a string that is not
// there.
void remove_error_class(int error_class);
void remove_error_code(int code);
void remove_error_string(int code);

// Where the value of MPI_LASTUSEDCODE is: the largest code there is. Always the same address, as
// the program may keep it.
int* last_used_code();

}  // namespace viaduct::mpi
