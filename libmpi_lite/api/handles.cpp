// Conversion of handles to integers and back (MPI 5.0, section 20.3.5), allowed at any time. The
// handles of this library, like the constants of the standard binary interface, fit 31 bits
// (core/handle.hpp), so the number is the handle and no table is needed. No handle is checked here:
// a number that is no handle is found out when the handle is used.
#include <cstdint>

#include "libmpi_lite/api/call.hpp"

namespace {

int number(const void* handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
}

template <class Handle>
Handle handle(int number) {
  return reinterpret_cast<Handle>(static_cast<std::intptr_t>(number));
}

}  // namespace

int PMPI_Comm_toint(MPI_Comm comm) {
  return number(comm);
}
VIADUCT_MPI(Comm_toint);
MPI_Comm PMPI_Comm_fromint(int comm) {
  return handle<MPI_Comm>(comm);
}
VIADUCT_MPI(Comm_fromint);

int PMPI_Errhandler_toint(MPI_Errhandler errhandler) {
  return number(errhandler);
}
VIADUCT_MPI(Errhandler_toint);
MPI_Errhandler PMPI_Errhandler_fromint(int errhandler) {
  return handle<MPI_Errhandler>(errhandler);
}
VIADUCT_MPI(Errhandler_fromint);

int PMPI_Group_toint(MPI_Group group) {
  return number(group);
}
VIADUCT_MPI(Group_toint);
MPI_Group PMPI_Group_fromint(int group) {
  return handle<MPI_Group>(group);
}
VIADUCT_MPI(Group_fromint);

int PMPI_Info_toint(MPI_Info info) {
  return number(info);
}
VIADUCT_MPI(Info_toint);
MPI_Info PMPI_Info_fromint(int info) {
  return handle<MPI_Info>(info);
}
VIADUCT_MPI(Info_fromint);

int PMPI_Message_toint(MPI_Message message) {
  return number(message);
}
VIADUCT_MPI(Message_toint);
MPI_Message PMPI_Message_fromint(int message) {
  return handle<MPI_Message>(message);
}
VIADUCT_MPI(Message_fromint);

int PMPI_Op_toint(MPI_Op op) {
  return number(op);
}
VIADUCT_MPI(Op_toint);
MPI_Op PMPI_Op_fromint(int op) {
  return handle<MPI_Op>(op);
}
VIADUCT_MPI(Op_fromint);

int PMPI_Request_toint(MPI_Request request) {
  return number(request);
}
VIADUCT_MPI(Request_toint);
MPI_Request PMPI_Request_fromint(int request) {
  return handle<MPI_Request>(request);
}
VIADUCT_MPI(Request_fromint);

int PMPI_Session_toint(MPI_Session session) {
  return number(session);
}
VIADUCT_MPI(Session_toint);
MPI_Session PMPI_Session_fromint(int session) {
  return handle<MPI_Session>(session);
}
VIADUCT_MPI(Session_fromint);

int PMPI_Type_toint(MPI_Datatype datatype) {
  return number(datatype);
}
VIADUCT_MPI(Type_toint);
MPI_Datatype PMPI_Type_fromint(int datatype) {
  return handle<MPI_Datatype>(datatype);
}
VIADUCT_MPI(Type_fromint);

int PMPI_Win_toint(MPI_Win win) {
  return number(win);
}
VIADUCT_MPI(Win_toint);
MPI_Win PMPI_Win_fromint(int win) {
  return handle<MPI_Win>(win);
}
VIADUCT_MPI(Win_fromint);
