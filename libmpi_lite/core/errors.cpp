// The table of the standard's error classes, and the table of those that the program has added.
#include "libmpi_lite/core/errors.hpp"

#include <mpi.h>

#include <array>
#include <map>

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

namespace {

struct Class {
  const char* name;
  const char* text;  // what MPI_Error_string says
};

// Index = number in the ABI, from MPI_SUCCESS = 0.
constexpr std::array kClasses = {
    Class{"MPI_SUCCESS", "no error"},
    Class{"MPI_ERR_BUFFER", "invalid buffer pointer"},
    Class{"MPI_ERR_COUNT", "invalid count"},
    Class{"MPI_ERR_TYPE", "invalid datatype"},
    Class{"MPI_ERR_TAG", "invalid tag"},
    Class{"MPI_ERR_COMM", "invalid communicator"},
    Class{"MPI_ERR_RANK", "invalid rank"},
    Class{"MPI_ERR_REQUEST", "invalid request"},
    Class{"MPI_ERR_ROOT", "invalid root"},
    Class{"MPI_ERR_GROUP", "invalid group"},
    Class{"MPI_ERR_OP", "invalid operation"},
    Class{"MPI_ERR_TOPOLOGY", "invalid topology"},
    Class{"MPI_ERR_DIMS", "invalid dimensions"},
    Class{"MPI_ERR_ARG", "invalid argument"},
    Class{"MPI_ERR_UNKNOWN", "unknown error"},
    Class{"MPI_ERR_TRUNCATE", "message truncated on receive"},
    Class{"MPI_ERR_OTHER", "an error of no other class"},
    Class{"MPI_ERR_INTERN", "internal error of the MPI library"},
    Class{"MPI_ERR_PENDING", "pending request"},
    Class{"MPI_ERR_IN_STATUS", "the error code is in the status"},
    Class{"MPI_ERR_ACCESS", "permission denied"},
    Class{"MPI_ERR_AMODE", "invalid file access mode"},
    Class{"MPI_ERR_ASSERT", "invalid assertion"},
    Class{"MPI_ERR_BAD_FILE", "invalid file name"},
    Class{"MPI_ERR_BASE", "invalid base address"},
    Class{"MPI_ERR_CONVERSION", "a data conversion function failed"},
    Class{"MPI_ERR_DISP", "invalid displacement"},
    Class{"MPI_ERR_DUP_DATAREP", "the data representation is defined already"},
    Class{"MPI_ERR_FILE_EXISTS", "the file exists"},
    Class{"MPI_ERR_FILE_IN_USE", "the file is in use"},
    Class{"MPI_ERR_FILE", "invalid file handle"},
    Class{"MPI_ERR_INFO_KEY", "invalid info key"},
    Class{"MPI_ERR_INFO_NOKEY", "no such info key"},
    Class{"MPI_ERR_INFO_VALUE", "invalid info value"},
    Class{"MPI_ERR_INFO", "invalid info object"},
    Class{"MPI_ERR_IO", "input or output failed"},
    Class{"MPI_ERR_KEYVAL", "invalid key value"},
    Class{"MPI_ERR_LOCKTYPE", "invalid lock type"},
    Class{"MPI_ERR_NAME", "invalid service name"},
    Class{"MPI_ERR_NO_MEM", "out of memory"},
    Class{"MPI_ERR_NOT_SAME", "collective arguments differ between processes"},
    Class{"MPI_ERR_NO_SPACE", "no space left on the device"},
    Class{"MPI_ERR_NO_SUCH_FILE", "no such file"},
    Class{"MPI_ERR_PORT", "invalid port name"},
    Class{"MPI_ERR_QUOTA", "quota exceeded"},
    Class{"MPI_ERR_READ_ONLY", "the file or file system is read-only"},
    Class{"MPI_ERR_RMA_ATTACH", "memory cannot be attached"},
    Class{"MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window"},
    Class{"MPI_ERR_RMA_RANGE", "the target memory is outside the window"},
    Class{"MPI_ERR_RMA_SHARED", "memory cannot be shared"},
    Class{"MPI_ERR_RMA_SYNC", "wrong synchronization of a window"},
    Class{"MPI_ERR_SERVICE", "invalid service name to withdraw"},
    Class{"MPI_ERR_SIZE", "invalid size"},
    Class{"MPI_ERR_SPAWN", "processes cannot be spawned"},
    Class{"MPI_ERR_UNSUPPORTED_DATAREP", "unsupported data representation"},
    Class{"MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation"},
    Class{"MPI_ERR_WIN", "invalid window"},
    Class{"MPI_ERR_RMA_FLAVOR", "wrong flavor of window"},
    Class{"MPI_ERR_PROC_ABORTED", "a process has aborted"},
    Class{"MPI_ERR_VALUE_TOO_LARGE", "a value is too large for its type"},
    Class{"MPI_ERR_SESSION", "invalid session"},
    Class{"MPI_ERR_ERRHANDLER", "invalid error handler"},
    Class{"MPI_ERR_ABI", "wrong use of the application binary interface"},
};
static_assert(kClasses.size() == MPI_ERR_ABI + 1);

bool predefined(int code) {
  return (code >= 0 && code < static_cast<int>(kClasses.size())) || code == MPI_ERR_LASTCODE;
}

struct Added {
  int error_class;   // equal to its own number: it is a class
  std::string text;  // empty: it has none, as section 9.5 has it
};

// By code. A function, so that it exists before the first use, whenever that is.
std::map<int, Added>& added() {
  static std::map<int, Added> codes;
  return codes;
}

int last_code = MPI_ERR_LASTCODE;

// Throws Error unless the program has added that code; `what` is the argument's name.
Added& find_added(int code, const char* what) {
  const auto it = added().find(code);
  if (it != added().end()) return it->second;
  throw Error(MPI_ERR_ARG, "argument " + std::string(what) + " (" + std::to_string(code) +
                               ") is not one that this program has added");
}

// Adds a code of that class; 0: a new class. Numbers are never used twice, so that a removed code
// is not taken for a new one.
int add(int error_class) {
  static int next = MPI_ERR_LASTCODE;
  if (next == 0x7fffffff) throw Error(MPI_ERR_OTHER, "all error codes are used up");
  ++next;
  added()[next] = {error_class ? error_class : next, ""};
  last_code = next;
  return next;
}

void remove(int code) {
  added().erase(code);
  last_code = added().empty() ? MPI_ERR_LASTCODE : added().rbegin()->first;
}

}  // namespace

bool is_error_code(int code) {
  return predefined(code) || added().contains(code);
}

std::string error_name(int code) {
  if (code == MPI_ERR_LASTCODE) return "MPI_ERR_LASTCODE";
  if (predefined(code)) return kClasses[static_cast<std::size_t>(code)].name;
  const auto it = added().find(code);
  if (it == added().end()) return "error " + std::to_string(code);
  return (it->second.error_class == code ? "error class " : "error code ") + std::to_string(code);
}

int error_class(int code) {
  return predefined(code) ? code : find_added(code, "errorcode").error_class;
}

std::string error_text(int code) {
  if (code == MPI_ERR_LASTCODE) return "MPI_ERR_LASTCODE: the last of the standard's codes";
  if (!predefined(code)) return find_added(code, "errorcode").text;
  const Class& c = kClasses[static_cast<std::size_t>(code)];
  return std::string(c.name) + ": " + c.text;
}

int add_error_class() {
  return add(0);
}

int add_error_code(int error_class) {
  if (!is_error_code(error_class) || mpi::error_class(error_class) != error_class)
    throw Error(MPI_ERR_ARG,
                "argument errorclass (" + std::to_string(error_class) + ") is not an error class");
  // MPI_SUCCESS has no codes: there is no error of that class.
  if (error_class == MPI_SUCCESS) throw Error(MPI_ERR_ARG, "argument errorclass is MPI_SUCCESS");
  return add(error_class);
}

void add_error_string(int code, const std::string& text) {
  Added& error = find_added(code, "errorcode");
  if (text.size() >= MPI_MAX_ERROR_STRING)
    throw Error(MPI_ERR_ARG, "argument string has " + std::to_string(text.size()) +
                                 " characters; MPI_MAX_ERROR_STRING allows " +
                                 std::to_string(MPI_MAX_ERROR_STRING - 1));
  error.text = text;
}

void remove_error_class(int error_class) {
  if (find_added(error_class, "errorclass").error_class != error_class)
    throw Error(MPI_ERR_ARG, "argument errorclass (" + std::to_string(error_class) +
                                 ") is an error code, not a class");
  for (const auto& [code, error] : added())
    if (error.error_class == error_class && code != error_class)
      throw Error(MPI_ERR_OTHER, "error class " + std::to_string(error_class) +
                                     " still has the code " + std::to_string(code));
  remove(error_class);
}

void remove_error_code(int code) {
  if (find_added(code, "errorcode").error_class == code)
    throw Error(MPI_ERR_ARG, "argument errorcode (" + std::to_string(code) +
                                 ") is an error class; MPI_Remove_error_class removes those");
  remove(code);
}

void remove_error_string(int code) {
  Added& error = find_added(code, "errorcode");
  // Section 9.5: it is erroneous to remove what was never added.
  if (error.text.empty())
    throw Error(MPI_ERR_ARG, "error code " + std::to_string(code) + " has no string");
  error.text.clear();
}

int* last_used_code() {
  return &last_code;
}

}  // namespace viaduct::mpi
