#include "drivers/startx_emul/node.hpp"

#include "drivers/link/knobs.hpp"

namespace viaduct::startx {

std::unique_ptr<Node> Node::open(const std::string& port, const NiuConfig& niu) {
  link::PortConfig config;
  config.devargs = port;
  return open(config, link::link_config_from_environment(), niu);
}

std::unique_ptr<Node> Node::open(const link::PortConfig& port, const link::LinkConfig& link,
                                 const NiuConfig& niu) {
  return std::unique_ptr<Node>(new Node(link::Port::open(port), link, niu));
}

}  // namespace viaduct::startx
