// The kernel's sockets as connections use them: TCP between NIC addresses, and abstract unix
// datagram sockets, by which processes of one host hand TCP connections to each other. All are
// non-blocking.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/descriptor.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

// Each connection needs a descriptor, and programs have a thousand of them: the soft limit is
// raised towards the hard one.
void raise_descriptor_limit();

// Where all processes of a user that have the NIC open listen at the same time. Empty: errno.
Descriptor listening_socket(const NicAddress& at);
Descriptor accepted_socket(int listener);

// Begins to connect. Empty: errno says why that cannot even be tried.
Descriptor connecting_socket(const NicAddress& from, const NicAddress& to);
// The outcome, once the socket is writable: 0 or an errno.
int connect_error(int fd);
// Whether it is a TCP connection of which neither side has closed.
bool is_open_connection(int fd);
// Closes without the minute in which the kernel keeps the port: the other side gets a reset, also
// when a child of fork() has the descriptor too.
void abort_connection(Descriptor fd);

// A name of this host's. Empty: errno (EADDRINUSE: another socket has it).
Descriptor named_socket(const std::string& name);
Descriptor sending_socket();

enum class Handed { over, nobody, busy };
// Gives the TCP connection and what was read from it to the socket of that name.
Handed hand_over(int sender, const std::string& name, const RequestBytes& request, int connection);

struct Received {
  RequestBytes request;
  Descriptor connection;
};
// The next one handed to a named socket; nullopt: none is there. What is no request, or not (or no
// longer) a TCP connection, has an empty descriptor. Whoever handed it over may have kept it, with
// power over the flag that makes it block.
std::optional<Received> receive_handed(int named);

}  // namespace viaduct::vipl
