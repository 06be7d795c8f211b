// The system calls of the connection layer: non-blocking TCP sockets between NIC addresses, and
// abstract unix datagram sockets, by which processes of one host hand TCP connections to each
// other. No state; any thread may call any function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/socket/unique_fd.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

// Raises the soft limit of open files towards the hard one: each connection needs a descriptor, and
// programs have a thousand of them. The limit is never lowered.
void raise_descriptor_limit();

// A TCP socket that listens at this address together with other processes of the same user
// (SO_REUSEPORT). Empty: errno says why.
UniqueFd listening_socket(const NicAddress& at);
// Holds a port of `at` that no other process has, which becomes `at.port`, until the socket is
// closed; listening_socket() works there meanwhile. Empty: errno says why.
UniqueFd port_holder(NicAddress& at);
// A connection from the listener's queue. Empty: errno says why, EAGAIN if there is none.
UniqueFd accepted_socket(int listener);

// Begins to connect; the socket becomes writable when the outcome is known. Empty: errno says why
// connecting could not even begin.
UniqueFd connecting_socket(const NicAddress& from, const NicAddress& to);
// The outcome of connect(), once the socket is writable: 0 or an errno.
int connect_error(int fd);
// Whether `fd` is a TCP connection that neither side has closed.
bool is_open_connection(int fd);
// Resets the connection and closes the socket. Without TIME_WAIT, in which the kernel would keep
// the port for a minute. The reset is sent even if a child of fork() still has the socket.
void abort_connection(UniqueFd fd);

// A unix datagram socket with this abstract name. Empty: errno says why, EADDRINUSE if another
// socket has the name.
UniqueFd named_socket(const std::string& name);
// A unix datagram socket without a name, for hand_over().
UniqueFd sending_socket();

// The request was handed over; no socket has that name; or the socket is full, or the kernel short
// of memory, for the moment.
enum class HandOverResult { handed_over, no_receiver, busy };
// Sends the request and the TCP connection (SCM_RIGHTS) to the socket of that name. The caller
// keeps its own descriptor of the connection.
HandOverResult hand_over(int sender, const std::string& name, const RequestBytes& request,
                         int connection);

// A datagram that another process handed over.
struct Datagram {
  RequestBytes request;
  UniqueFd connection;
};
// The next datagram of a named socket; nullopt: there is none. `connection` is empty if the
// datagram is no request, or has no TCP connection that is open. The sender may have kept the
// connection and may make it blocking again, so reads and writes on it always say MSG_DONTWAIT.
std::optional<Datagram> receive_handed(int named);

}  // namespace viaduct::vipl
