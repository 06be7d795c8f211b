// Categories of variables (MPI 5.0, section 15.3.9): one for the control variables of each layer,
// and, when MPI_Init has opened the channels, one for the counters of each channel. None contains
// another.
#include <algorithm>

#include "libmpi_lite/api/tool_information/tool.hpp"

using namespace viaduct::mpi;

namespace viaduct::mpi::tool {
namespace {

struct Category {
  std::string name, meaning;
  std::vector<int> control, performance;  // indices
};

std::vector<Category> categories() {
  std::vector<Category> all{{"port", "the DPDK port between nodes", {}, {}},
                            {"link", "reliable transport over the port", {}, {}},
                            {"mpi", "the MPI library", {}, {}}};
  const auto& control = control_variables();
  for (std::size_t i = 0; i < control.size(); ++i)
    all[control[i].layer].control.push_back(static_cast<int>(i));
  const auto& performance = performance_variables();
  for (std::size_t i = 0; i < performance.size(); ++i) {
    const std::string name = performance[i].channel + "_counters";
    if (all.back().name != name) all.push_back({name, "counters of a channel", {}, {}});
    all.back().performance.push_back(static_cast<int>(i));
  }
  return all;
}

void give_indices(const std::vector<int>& from, int length, int* indices) {
  if (length <= 0) return;
  std::copy_n(from.begin(), std::min(from.size(), static_cast<std::size_t>(length)),
              required(indices));
}

}  // namespace
}  // namespace viaduct::mpi::tool

int PMPI_T_category_get_num(int* num_cat) {
  return tool::call(
      [&] { *tool::required(num_cat) = static_cast<int>(tool::categories().size()); });
}
VIADUCT_MPI(T_category_get_num);

int PMPI_T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len,
                             int* num_cvars, int* num_pvars, int* num_categories) {
  return tool::call([&] {
    const auto all = tool::categories();
    const auto& category = tool::entry(all, cat_index);
    tool::give(name, name_len, category.name);
    tool::give(desc, desc_len, category.meaning);
    tool::give(num_cvars, static_cast<int>(category.control.size()));
    tool::give(num_pvars, static_cast<int>(category.performance.size()));
    tool::give(num_categories, 0);
  });
}
VIADUCT_MPI(T_category_get_info);

int PMPI_T_category_get_num_events(int cat_index, int* num_events) {
  return tool::call([&] {
    tool::entry(tool::categories(), cat_index);
    *tool::required(num_events) = 0;
  });
}
VIADUCT_MPI(T_category_get_num_events);

int PMPI_T_category_get_index(const char* name, int* cat_index) {
  return tool::call([&] {
    *tool::required(cat_index) = tool::index_of(tool::categories(), tool::required(name));
  });
}
VIADUCT_MPI(T_category_get_index);

int PMPI_T_category_get_cvars(int cat_index, int len, int indices[]) {
  return tool::call([&] {
    const auto all = tool::categories();
    tool::give_indices(tool::entry(all, cat_index).control, len, indices);
  });
}
VIADUCT_MPI(T_category_get_cvars);

int PMPI_T_category_get_pvars(int cat_index, int len, int indices[]) {
  return tool::call([&] {
    const auto all = tool::categories();
    tool::give_indices(tool::entry(all, cat_index).performance, len, indices);
  });
}
VIADUCT_MPI(T_category_get_pvars);

// There are none of these: nothing is written.
int PMPI_T_category_get_events(int cat_index, int, int[]) {
  return tool::call([&] { tool::entry(tool::categories(), cat_index); });
}
VIADUCT_MPI(T_category_get_events);

int PMPI_T_category_get_categories(int cat_index, int, int[]) {
  return tool::call([&] { tool::entry(tool::categories(), cat_index); });
}
VIADUCT_MPI(T_category_get_categories);

// Categories only become more, so their number tells whether they have changed.
int PMPI_T_category_changed(int* update_number) {
  return tool::call(
      [&] { *tool::required(update_number) = static_cast<int>(tool::categories().size()); });
}
VIADUCT_MPI(T_category_changed);
