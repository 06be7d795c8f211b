// One MBCF node: a port, its link and its engine, opened together as programs do it
// (endpoint/endpoint.hpp has open() and poll()). Owns all three; one owner thread calls it.
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
