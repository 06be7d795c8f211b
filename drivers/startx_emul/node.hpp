// One StarT-X node: a port, its link and its NIU, opened together (Node::open) as programs use
// them. The node owns all three. Thread rule: one owner thread, which calls poll() often.
#pragma once

#include "drivers/endpoint/endpoint.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {

class Node final : public endpoint::EndpointOf<Node, Niu<port::Port>, NiuConfig> {
 public:
  using EndpointOf::EndpointOf;

  Niu<port::Port>& niu() { return driver(); }
  Rdma<port::Port>& rdma() { return driver().rdma(); }
};

}  // namespace viaduct::startx
