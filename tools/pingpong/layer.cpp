// The list of layers, which the files in layers/ fill before main() begins.
#include "tools/pingpong/layer.hpp"

#include <algorithm>

namespace viaduct::pingpong {

namespace {

// A static object within a function exists whenever a static object of another file asks for it.
std::vector<LayerKind>& registered() {
  static std::vector<LayerKind> kinds;
  return kinds;
}

}  // namespace

namespace detail {

void add_layer_kind(const LayerKind& kind) {
  auto& kinds = registered();
  const auto place =
      std::upper_bound(kinds.begin(), kinds.end(), kind,
                       [](const LayerKind& a, const LayerKind& b) { return a.order < b.order; });
  kinds.insert(place, kind);
}

}  // namespace detail

const std::vector<LayerKind>& layer_kinds() {
  return registered();
}

std::vector<LayerInfo> layer_infos() {
  std::vector<LayerInfo> out;
  for (const LayerKind& kind : registered()) out.push_back(kind.info);
  return out;
}

const LayerKind* find_layer(std::string_view name) {
  for (const LayerKind& kind : registered())
    if (kind.info.name == name) return &kind;
  return nullptr;
}

}  // namespace viaduct::pingpong
