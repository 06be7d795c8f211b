// Both drivers by their C++ classes.
#include <drivers/mbcf/node.hpp>
#include <drivers/startx_emul/node.hpp>

#include <iostream>

int main() try {
  const auto startx = viaduct::startx::Node::open("net_ring0");
  const auto mbcf = viaduct::mbcf::Node::open("net_ring1");
  startx->poll();
  mbcf->poll();
  std::cout << startx->address().text() << " " << mbcf->address().text() << "\n";
  return startx->address() == mbcf->address() ? 1 : 0;
} catch (const viaduct::base::SetupError& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
