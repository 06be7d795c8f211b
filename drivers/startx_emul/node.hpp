// One StarT-X node: a port, its link and its NIU, opened together as programs do it.
#pragma once

#include <memory>
#include <string>

#include "drivers/link/eal.hpp"
#include "drivers/link/port.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {

class Node {
 public:
  // `port` as link::PortConfig::devargs has it; everything else from the VIADUCT_* environment
  // variables. Throws SetupError.
  static std::unique_ptr<Node> open(const std::string& port, const NiuConfig& niu = {});
  static std::unique_ptr<Node> open(const link::PortConfig& port, const link::LinkConfig& link,
                                    const NiuConfig& niu);

  link::Port& port() { return *port_; }
  link::Link<link::Port>& link() { return link_; }
  Niu<link::Port>& niu() { return niu_; }
  Rdma<link::Port>& rdma() { return niu_.rdma(); }
  link::Address address() const { return port_->address(); }
  void poll() { niu_.poll(link::now()); }

 private:
  Node(std::unique_ptr<link::Port> port, const link::LinkConfig& link, const NiuConfig& niu)
      : port_(std::move(port)), link_(*port_, link), niu_(link_, niu) {}

  std::unique_ptr<link::Port> port_;
  link::Link<link::Port> link_;
  Niu<link::Port> niu_;
};

}  // namespace viaduct::startx
