// One StarT-X node: a port, its link and its NIU.
#pragma once

#include "drivers/link/node.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {

class Node final : public link::NodeOf<Node, Niu<link::Port>, NiuConfig> {
 public:
  using NodeOf::NodeOf;

  Niu<link::Port>& niu() { return driver(); }
  Rdma<link::Port>& rdma() { return driver().rdma(); }
};

}  // namespace viaduct::startx
