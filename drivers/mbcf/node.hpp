// One MBCF node: a port, its link and its engine.
#pragma once

#include "drivers/link/node.hpp"
#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

class Node final : public link::NodeOf<Node, Engine<link::Port>, EngineConfig> {
 public:
  using NodeOf::NodeOf;

  Engine<link::Port>& engine() { return driver(); }
};

}  // namespace viaduct::mbcf
