// Error classes and codes with their texts (MPI 5.0, sections 9.4 and 9.5). Every class is a code
// of its own class; programs add classes, codes of any class, and texts.
#pragma once

#include <string>

namespace viaduct::mpi {

// Whether that is an error class or code at this moment.
bool is_error_code(int code);
// "MPI_ERR_RANK"; "error class 16390" for one that the program has added; "error 99" for none.
std::string error_name(int code);
// The class of a code and its text. Throw Error if there is no such code.
int error_class(int code);
std::string error_text(int code);

int add_error_class();
int add_error_code(int error_class);
void add_error_string(int code, const std::string& text);
// Throw Error for predefined ones, and for a class that still has codes.
void remove_error_class(int error_class);
void remove_error_code(int code);
void remove_error_string(int code);

// MPI_LASTUSEDCODE: the largest code there is; always at the same place.
int* last_used_code();

}  // namespace viaduct::mpi
