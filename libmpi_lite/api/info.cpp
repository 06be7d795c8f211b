// MPI_Info (MPI 5.0, chapter 10); allowed at any time (section 11.4.1). An info object is a list of
// pairs in the order in which keys were first set, which is the order of MPI_Info_get_nthkey.
//
// Choices where the standard leaves one: MPI_INFO_ENV tells only what a process can know before
// MPI_Init (core/environment_info.hpp). Keys and values that are too long are errors, not cut.
#include <algorithm>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/core/environment_info.hpp"
#include "libmpi_lite/launch/single.hpp"

using namespace viaduct::mpi;

namespace viaduct::mpi {

Info& define_info_env() {
  const auto handle = reinterpret_cast<std::uintptr_t>(MPI_INFO_ENV);
  info_handles.define(handle, environment_info(started_processes()));
  return *info_handles.find(handle);
}

}  // namespace viaduct::mpi

namespace {

std::string check_key(const char* key) {
  const std::size_t length = std::strlen(check_pointer(key, "key"));
  if (length == 0 || length >= MPI_MAX_INFO_KEY)
    fail(MPI_ERR_INFO_KEY, "argument key has %zu characters; 1 to %d are allowed", length,
         MPI_MAX_INFO_KEY - 1);
  return key;
}

// MPI_INFO_ENV can be read and duplicated, but not changed or freed (section 11.2.1).
Info& check_writable(MPI_Info info) {
  if (info == MPI_INFO_ENV) fail(MPI_ERR_INFO, "argument info is MPI_INFO_ENV, which is read-only");
  return check_info(info);
}

auto find(Info& info, const std::string& key) {
  return std::find_if(info.entries.begin(), info.entries.end(),
                      [&](const auto& entry) { return entry.first == key; });
}

// Copies as many characters as the buffer has room for, and a final zero. `room` is at least 1.
void give_value(const std::string& value, char* buffer, std::size_t room) {
  const std::size_t length = std::min(value.size(), room - 1);
  std::memcpy(buffer, value.data(), length);
  buffer[length] = 0;
}

}  // namespace

int PMPI_Info_create(MPI_Info* info) {
  return call_any_time("MPI_Info_create", [&] {
    check_pointer(info, "info");
    *info = new_handle<MPI_Info>(info_handles, make<Info>());
  });
}
VIADUCT_MPI(Info_create);

// The arguments are not used: the kernel knows the command line of this process better than the
// program.
int PMPI_Info_create_env(int, char*[], MPI_Info* info) {
  return call_any_time("MPI_Info_create_env", [&] {
    check_pointer(info, "info");
    *info = new_handle<MPI_Info>(info_handles, environment_info(started_processes()));
  });
}
VIADUCT_MPI(Info_create_env);

int PMPI_Info_free(MPI_Info* info) {
  return call_any_time("MPI_Info_free", [&] {
    check_writable(*check_pointer(info, "info"));
    info_handles.remove(reinterpret_cast<std::uintptr_t>(*info));
    *info = MPI_INFO_NULL;
  });
}
VIADUCT_MPI(Info_free);

// The copy of MPI_INFO_ENV is an ordinary info object, which may be changed.
int PMPI_Info_dup(MPI_Info info, MPI_Info* newinfo) {
  return call_any_time("MPI_Info_dup", [&] {
    check_pointer(newinfo, "newinfo");
    Ref<Info> copy = make<Info>();
    copy->entries = check_info(info).entries;
    *newinfo = new_handle<MPI_Info>(info_handles, std::move(copy));
  });
}
VIADUCT_MPI(Info_dup);

int PMPI_Info_set(MPI_Info info, const char* key, const char* value) {
  return call_any_time("MPI_Info_set", [&] {
    Info& i = check_writable(info);
    const std::string k = check_key(key);
    const std::size_t length = std::strlen(check_pointer(value, "value"));
    if (length >= MPI_MAX_INFO_VAL)
      fail(MPI_ERR_INFO_VALUE, "argument value has %zu characters; up to %d are allowed", length,
           MPI_MAX_INFO_VAL - 1);
    if (const auto entry = find(i, k); entry != i.entries.end())
      entry->second = value;
    else
      i.entries.emplace_back(k, value);
  });
}
VIADUCT_MPI(Info_set);

int PMPI_Info_delete(MPI_Info info, const char* key) {
  return call_any_time("MPI_Info_delete", [&] {
    Info& i = check_writable(info);
    const auto entry = find(i, check_key(key));
    if (entry == i.entries.end()) fail(MPI_ERR_INFO_NOKEY, "there is no key \"%s\"", key);
    i.entries.erase(entry);
  });
}
VIADUCT_MPI(Info_delete);

int PMPI_Info_get_nkeys(MPI_Info info, int* nkeys) {
  return call_any_time("MPI_Info_get_nkeys", [&] {
    *check_pointer(nkeys, "nkeys") = static_cast<int>(check_info(info).entries.size());
  });
}
VIADUCT_MPI(Info_get_nkeys);

int PMPI_Info_get_nthkey(MPI_Info info, int n, char* key) {
  return call_any_time("MPI_Info_get_nthkey", [&] {
    const Info& i = check_info(info);
    if (n < 0 || static_cast<std::size_t>(n) >= i.entries.size())
      fail(MPI_ERR_ARG, "argument n is %d; there are %zu keys", n, i.entries.size());
    give_value(i.entries[static_cast<std::size_t>(n)].first, check_pointer(key, "key"),
               MPI_MAX_INFO_KEY);
  });
}
VIADUCT_MPI(Info_get_nthkey);

int PMPI_Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  return call_any_time("MPI_Info_get_valuelen", [&] {
    Info& i = check_info(info);
    const auto entry = find(i, check_key(key));
    check_pointer(valuelen, "valuelen");
    *check_pointer(flag, "flag") = entry != i.entries.end();
    if (*flag) *valuelen = static_cast<int>(entry->second.size());
  });
}
VIADUCT_MPI(Info_get_valuelen);

// `valuelen` does not count the final zero: the buffer has valuelen + 1 characters.
int PMPI_Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  return call_any_time("MPI_Info_get", [&] {
    Info& i = check_info(info);
    const auto entry = find(i, check_key(key));
    if (valuelen < 0)
      fail(MPI_ERR_ARG, "argument valuelen is %d; it must not be negative", valuelen);
    check_pointer(value, "value");
    *check_pointer(flag, "flag") = entry != i.entries.end();
    if (*flag) give_value(entry->second, value, static_cast<std::size_t>(valuelen) + 1);
  });
}
VIADUCT_MPI(Info_get);

// `*buflen` counts the final zero: room on the way in, what would be needed on the way out. 0 asks
// for the length only, and then `value` is not used.
int PMPI_Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  return call_any_time("MPI_Info_get_string", [&] {
    Info& i = check_info(info);
    const auto entry = find(i, check_key(key));
    if (*check_pointer(buflen, "buflen") < 0)
      fail(MPI_ERR_ARG, "argument buflen is %d; it must not be negative", *buflen);
    *check_pointer(flag, "flag") = entry != i.entries.end();
    if (!*flag) return;
    if (*buflen > 0)
      give_value(entry->second, check_pointer(value, "value"), static_cast<std::size_t>(*buflen));
    *buflen = static_cast<int>(entry->second.size()) + 1;
  });
}
VIADUCT_MPI(Info_get_string);
