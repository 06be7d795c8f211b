// One MBCF node: a port, its link and its engine.
#pragma once

#include "drivers/endpoint/endpoint.hpp"
#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

class Node final : public endpoint::EndpointOf<Node, Engine<port::Port>, EngineConfig> {
 public:
  using EndpointOf::EndpointOf;

  Engine<port::Port>& engine() { return driver(); }
};

}  // namespace viaduct::mbcf
