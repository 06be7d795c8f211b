// The collectives between neighbours in all topologies (MPI 5.0, sections 8.6 to 8.9), blocking,
// nonblocking and persistent, with ints and large counts; and distributed graphs (section 8.5.4).
#include <algorithm>
#include <random>
#include <vector>

#include "job.hpp"

namespace {

using job::rank_in;
using job::section;
using job::size;
using job::size_of;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

// The blocks that a rank exchanges. Every message is worked out from both ends: `from` sends block
// `out`, which is block `in` at the receiver.
struct Edge {
  int from, out, to, in;
};

// Whom each rank sends to and receives from, in the order of its blocks.
struct Model {
  std::vector<std::vector<int>> destinations, sources;
  bool mirrored = false;  // a grid: block i arrives as block i ^ 1

  // The blocks between two ranks match in their order, but for grids.
  std::vector<Edge> edges() const {
    std::vector<Edge> all;
    for (int from = 0; from < static_cast<int>(destinations.size()); ++from) {
      std::vector<int> used(destinations.size());
      for (int out = 0; out < static_cast<int>(destinations[at(from)].size()); ++out) {
        const int to = destinations[at(from)][at(out)];
        if (to == MPI_PROC_NULL) continue;
        int in = -1;
        if (mirrored) {
          in = out ^ 1;
        } else {
          int skip = used[at(to)]++;
          for (int i = 0; i < static_cast<int>(sources[at(to)].size()) && in < 0; ++i)
            if (sources[at(to)][at(i)] == from && skip-- == 0) in = i;
        }
        all.push_back({from, out, to, in});
      }
    }
    return all;
  }
};

int item(int from, int block, int run) {
  return from * 1000 + block * 10 + run;
}

enum class Form { blocking, nonblocking, persistent, large };

// All five operations with blocks of one int each, or of `block % 3` ints in the v- and w-forms.
class Exchange {
 public:
  Exchange(MPI_Comm comm, const Model& model) : comm_(comm), me_(rank_in(comm)) {
    out_degree_ = static_cast<int>(model.destinations[at(me_)].size());
    in_degree_ = static_cast<int>(model.sources[at(me_)].size());
    from_.assign(at(in_degree_), Edge{-1, -1, -1, -1});
    for (const Edge& edge : model.edges())
      if (edge.to == me_) from_[at(edge.in)] = edge;
    int place = 0;
    for (int i = 0; i < out_degree_; ++i) {
      out_counts_.push_back(i % 3);
      out_places_.push_back(place);
      place += i % 3 + 1;
    }
    out_.resize(at(place) + 1);
    place = 0;
    for (int i = 0; i < in_degree_; ++i) {
      in_counts_.push_back(from_[at(i)].from < 0 ? 0 : from_[at(i)].out % 3);
      in_places_.push_back(place);
      place += 3;
    }
    in_.resize(at(place) + 1);
    for (const int p : out_places_) out_bytes_.push_back(p * MPI_Aint{sizeof(int)});
    for (const int p : in_places_) in_bytes_.push_back(p * MPI_Aint{sizeof(int)});
    out_types_.assign(at(out_degree_), MPI_INT);
    in_types_.assign(at(in_degree_), MPI_INT);
  }

  void allgather(Form form, int run) {
    const int mine = item(me_, 7, run);
    std::vector<int> in(at(in_degree_) + 1, -1);
    const MPI_Count one = 1;
    call(
        form,
        [&] { return MPI_Neighbor_allgather(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, comm_); },
        [&](MPI_Request* r) {
          return MPI_Ineighbor_allgather(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, comm_, r);
        },
        [&](MPI_Request* r) {
          return MPI_Neighbor_allgather_init(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, comm_,
                                             MPI_INFO_NULL, r);
        },
        [&] {
          return MPI_Neighbor_allgather_c(&mine, one, MPI_INT, in.data(), one, MPI_INT, comm_);
        });
    for (int i = 0; i < in_degree_; ++i)
      CHECK_EQ(in[at(i)], from_[at(i)].from < 0 ? -1 : item(from_[at(i)].from, 7, run));
  }

  void allgatherv(Form form, int run) {
    const int mine = item(me_, 7, run);
    std::vector<int> in(at(2 * in_degree_) + 1, -1), counts(at(in_degree_), 1), places;
    for (int i = 0; i < in_degree_; ++i) places.push_back(2 * (in_degree_ - 1 - i));
    const std::vector<MPI_Count> large(counts.begin(), counts.end());
    const std::vector<MPI_Aint> large_places(places.begin(), places.end());
    call(
        form,
        [&] {
          return MPI_Neighbor_allgatherv(&mine, 1, MPI_INT, in.data(), counts.data(), places.data(),
                                         MPI_INT, comm_);
        },
        [&](MPI_Request* r) {
          return MPI_Ineighbor_allgatherv(&mine, 1, MPI_INT, in.data(), counts.data(),
                                          places.data(), MPI_INT, comm_, r);
        },
        [&](MPI_Request* r) {
          return MPI_Neighbor_allgatherv_init(&mine, 1, MPI_INT, in.data(), counts.data(),
                                              places.data(), MPI_INT, comm_, MPI_INFO_NULL, r);
        },
        [&] {
          return MPI_Neighbor_allgatherv_c(&mine, 1, MPI_INT, in.data(), large.data(),
                                           large_places.data(), MPI_INT, comm_);
        });
    for (int i = 0; i < in_degree_; ++i)
      CHECK_EQ(in[at(places[at(i)])], from_[at(i)].from < 0 ? -1 : item(from_[at(i)].from, 7, run));
  }

  void alltoall(Form form, int run) {
    std::vector<int> out, in(at(in_degree_) + 1, -1);
    for (int i = 0; i < out_degree_; ++i) out.push_back(item(me_, i, run));
    out.push_back(0);
    call(
        form,
        [&] { return MPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_); },
        [&](MPI_Request* r) {
          return MPI_Ineighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_, r);
        },
        [&](MPI_Request* r) {
          return MPI_Neighbor_alltoall_init(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_,
                                            MPI_INFO_NULL, r);
        },
        [&] {
          return MPI_Neighbor_alltoall_c(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_);
        });
    for (int i = 0; i < in_degree_; ++i)
      CHECK_EQ(in[at(i)],
               from_[at(i)].from < 0 ? -1 : item(from_[at(i)].from, from_[at(i)].out, run));
  }

  void alltoallv(Form form, int run) {
    fill(run);
    const std::vector<MPI_Count> out_counts(out_counts_.begin(), out_counts_.end()),
        in_counts(in_counts_.begin(), in_counts_.end());
    const std::vector<MPI_Aint> out_places(out_places_.begin(), out_places_.end()),
        in_places(in_places_.begin(), in_places_.end());
    call(
        form,
        [&] {
          return MPI_Neighbor_alltoallv(out_.data(), out_counts_.data(), out_places_.data(),
                                        MPI_INT, in_.data(), in_counts_.data(), in_places_.data(),
                                        MPI_INT, comm_);
        },
        [&](MPI_Request* r) {
          return MPI_Ineighbor_alltoallv(out_.data(), out_counts_.data(), out_places_.data(),
                                         MPI_INT, in_.data(), in_counts_.data(), in_places_.data(),
                                         MPI_INT, comm_, r);
        },
        [&](MPI_Request* r) {
          return MPI_Neighbor_alltoallv_init(out_.data(), out_counts_.data(), out_places_.data(),
                                             MPI_INT, in_.data(), in_counts_.data(),
                                             in_places_.data(), MPI_INT, comm_, MPI_INFO_NULL, r);
        },
        [&] {
          return MPI_Neighbor_alltoallv_c(out_.data(), out_counts.data(), out_places.data(),
                                          MPI_INT, in_.data(), in_counts.data(), in_places.data(),
                                          MPI_INT, comm_);
        });
    check(run);
  }

  void alltoallw(Form form, int run) {
    fill(run);
    const std::vector<MPI_Count> out_counts(out_counts_.begin(), out_counts_.end()),
        in_counts(in_counts_.begin(), in_counts_.end());
    call(
        form,
        [&] {
          return MPI_Neighbor_alltoallw(out_.data(), out_counts_.data(), out_bytes_.data(),
                                        out_types_.data(), in_.data(), in_counts_.data(),
                                        in_bytes_.data(), in_types_.data(), comm_);
        },
        [&](MPI_Request* r) {
          return MPI_Ineighbor_alltoallw(out_.data(), out_counts_.data(), out_bytes_.data(),
                                         out_types_.data(), in_.data(), in_counts_.data(),
                                         in_bytes_.data(), in_types_.data(), comm_, r);
        },
        [&](MPI_Request* r) {
          return MPI_Neighbor_alltoallw_init(
              out_.data(), out_counts_.data(), out_bytes_.data(), out_types_.data(), in_.data(),
              in_counts_.data(), in_bytes_.data(), in_types_.data(), comm_, MPI_INFO_NULL, r);
        },
        [&] {
          return MPI_Neighbor_alltoallw_c(out_.data(), out_counts.data(), out_bytes_.data(),
                                          out_types_.data(), in_.data(), in_counts.data(),
                                          in_bytes_.data(), in_types_.data(), comm_);
        });
    check(run);
  }

 private:
  template <class Blocking, class Nonblocking, class Persistent, class Large>
  static void call(Form form, Blocking blocking, Nonblocking nonblocking, Persistent persistent,
                   Large large) {
    MPI_Request request = MPI_REQUEST_NULL;
    switch (form) {
      case Form::blocking: CHECK_EQ(blocking(), MPI_SUCCESS); break;
      case Form::large: CHECK_EQ(large(), MPI_SUCCESS); break;
      case Form::nonblocking: CHECK_EQ(nonblocking(&request), MPI_SUCCESS); break;
      case Form::persistent:
        CHECK_EQ(persistent(&request), MPI_SUCCESS);
        for (int run = 0; run < 2; ++run) {
          MPI_Start(&request);
          if (run == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == Form::persistent) MPI_Request_free(&request);
  }
  void fill(int run) {
    std::fill(in_.begin(), in_.end(), -1);
    for (int i = 0; i < out_degree_; ++i)
      for (int k = 0; k < out_counts_[at(i)]; ++k)
        out_[at(out_places_[at(i)] + k)] = item(me_, i, run) + k;
  }
  void check(int run) const {
    for (int i = 0; i < in_degree_; ++i)
      for (int k = 0; k < 3; ++k)
        CHECK_EQ(in_[at(in_places_[at(i)] + k)],
                 k < in_counts_[at(i)] ? item(from_[at(i)].from, from_[at(i)].out, run) + k : -1);
  }

  MPI_Comm comm_;
  int me_, out_degree_, in_degree_;
  std::vector<Edge> from_;  // by block that is received
  std::vector<int> out_, in_, out_counts_, in_counts_, out_places_, in_places_;
  std::vector<MPI_Aint> out_bytes_, in_bytes_;
  std::vector<MPI_Datatype> out_types_, in_types_;
};

void check_all(MPI_Comm comm, const Model& model) {
  Exchange exchange(comm, model);
  int run = 0;
  for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent, Form::large}) {
    ++run;
    exchange.allgather(form, run);
    exchange.allgatherv(form, run);
    exchange.alltoall(form, run);
    exchange.alltoallv(form, run);
    exchange.alltoallw(form, run);
  }
}

// ---- topologies --------------------------------------------------------------------------------

void grid(std::vector<int> dims, int periodic) {
  const int dimensions = static_cast<int>(dims.size());
  std::string name = periodic ? "periodic grid" : "grid";
  for (const int d : dims) name += " " + std::to_string(d);
  section(name);
  const std::vector<int> periods(dims.size(), periodic);
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims.data(), periods.data(), 0, &comm);
  if (comm == MPI_COMM_NULL) return;
  Model model;
  model.mirrored = true;
  for (int rank = 0; rank < size_of(comm); ++rank) {
    std::vector<int> coords(dims.size()), neighbors;
    MPI_Cart_coords(comm, rank, dimensions, coords.data());
    for (int d = 0; d < dimensions; ++d)
      for (const int step : {-1, 1}) {
        std::vector<int> there = coords;
        there[at(d)] += step;
        int neighbor = MPI_PROC_NULL;
        if (periodic || (there[at(d)] >= 0 && there[at(d)] < dims[at(d)]))
          MPI_Cart_rank(comm, there.data(), &neighbor);
        neighbors.push_back(neighbor);
      }
    model.destinations.push_back(neighbors);
    model.sources.push_back(neighbors);
  }
  check_all(comm, model);
  MPI_Comm_free(&comm);
}

void grids() {
  grid({size()}, 1);
  grid({size()}, 0);
  int dims[2] = {0, 0};
  MPI_Dims_create(size(), 2, dims);
  grid({dims[0], dims[1]}, 1);
  grid({dims[1], dims[0]}, 0);
  grid({1, size()}, 1);
}

void graph() {
  section("graph");
  // A star around rank 0, whose ranks are neighbours of themselves, too.
  std::vector<int> index, edges;
  Model model;
  for (int rank = 0; rank < size(); ++rank) {
    std::vector<int> neighbors{rank};
    if (rank > 0) neighbors.push_back(0);
    for (int other = 1; rank == 0 && other < size(); ++other) neighbors.push_back(other);
    edges.insert(edges.end(), neighbors.begin(), neighbors.end());
    index.push_back(static_cast<int>(edges.size()));
    model.destinations.push_back(neighbors);
    model.sources.push_back(neighbors);
  }
  MPI_Comm comm;
  MPI_Graph_create(MPI_COMM_WORLD, size(), index.data(), edges.data(), 0, &comm);
  check_all(comm, model);
  MPI_Comm duplicate;
  MPI_Comm_dup(comm, &duplicate);
  check_all(duplicate, model);
  MPI_Comm_free(&duplicate);
  MPI_Comm_free(&comm);
}

// Any edges, several between two ranks, and from a rank to itself: the same at all ranks by the
// seed.
Model random_model(unsigned seed) {
  std::minstd_rand random(seed);
  Model model;
  model.destinations.resize(at(size()));
  model.sources.resize(at(size()));
  const int edges = static_cast<int>(random() % at(3 * size() + 1));
  for (int i = 0; i < edges; ++i) {
    const int from = static_cast<int>(random() % at(size())),
              to = static_cast<int>(random() % at(size()));
    model.destinations[at(from)].push_back(to);
    model.sources[at(to)].push_back(from);
  }
  return model;
}

void check_neighbors(MPI_Comm comm, const std::vector<int>& sources, const std::vector<int>& in,
                     const std::vector<int>& destinations, const std::vector<int>& out) {
  int in_degree = -1, out_degree = -1, weighted = -1;
  MPI_Dist_graph_neighbors_count(comm, &in_degree, &out_degree, &weighted);
  CHECK_EQ(in_degree, static_cast<int>(sources.size()));
  CHECK_EQ(out_degree, static_cast<int>(destinations.size()));
  CHECK_EQ(weighted, 1);
  std::vector<int> got(sources.size() + 1), got_in(got), sent(destinations.size() + 1),
      got_out(sent);
  MPI_Dist_graph_neighbors(comm, in_degree, got.data(), got_in.data(), out_degree, sent.data(),
                           got_out.data());
  for (std::vector<int>* list : {&got, &got_in, &sent, &got_out}) list->pop_back();
  CHECK(got == sources);
  CHECK(got_in == in);
  CHECK(sent == destinations);
  CHECK(got_out == out);
}

void adjacent_graphs() {
  section("distributed graphs whose ranks know their neighbours");
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Model model = random_model(seed);
    const std::vector<int>&sources = model.sources[at(job::rank())],
          &destinations = model.destinations[at(job::rank())];
    std::vector<int> in, out;
    for (const int source : sources) in.push_back(source + 1);
    for (const int destination : destinations) out.push_back(2 * destination);
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
        in.empty() ? MPI_WEIGHTS_EMPTY : in.data(), static_cast<int>(destinations.size()),
        destinations.data(), out.empty() ? MPI_WEIGHTS_EMPTY : out.data(), MPI_INFO_NULL, 0, &comm);
    int kind = -1;
    MPI_Topo_test(comm, &kind);
    CHECK_EQ(kind, MPI_DIST_GRAPH);
    check_neighbors(comm, sources, in, destinations, out);
    check_all(comm, model);
    MPI_Comm_free(&comm);
  }
}

// Each edge is named by any rank. So ranks learn their neighbours in an order that they can only
// ask for.
void general_graphs() {
  section("distributed graphs whose edges are known anywhere");
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Model drawn = random_model(seed);
    std::vector<int> sources, degrees, destinations, weights;
    int number = 0;
    for (int from = 0; from < size(); ++from)
      for (const int to : drawn.destinations[at(from)]) {
        if (number++ % size() != job::rank()) continue;
        sources.push_back(from);
        degrees.push_back(1);
        destinations.push_back(to);
        weights.push_back(from + to);
      }
    MPI_Comm comm;
    MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                          degrees.data(), destinations.data(),
                          weights.empty() ? MPI_WEIGHTS_EMPTY : weights.data(), MPI_INFO_NULL, 0,
                          &comm);
    int in = -1, out = -1, weighted = -1;
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    CHECK_EQ(weighted, 1);
    std::vector<int> from(at(in)), from_weights(from), to(at(out)), to_weights(to);
    MPI_Dist_graph_neighbors(comm, in, from.data(), from_weights.data(), out, to.data(),
                             to_weights.data());
    for (int i = 0; i < in; ++i) CHECK_EQ(from_weights[at(i)], from[at(i)] + job::rank());
    for (int i = 0; i < out; ++i) CHECK_EQ(to_weights[at(i)], to[at(i)] + job::rank());
    std::vector<int> sorted = from, expected = drawn.sources[at(job::rank())];
    std::sort(sorted.begin(), sorted.end());
    std::sort(expected.begin(), expected.end());
    CHECK(sorted == expected);

    // What the others have learned makes the model of the exchange.
    Model model;
    for (int rank = 0; rank < size(); ++rank) {
      int degrees_there[] = {in, out};
      MPI_Bcast(degrees_there, 2, MPI_INT, rank, MPI_COMM_WORLD);
      std::vector<int> s(from), d(to);
      s.resize(at(degrees_there[0]));
      d.resize(at(degrees_there[1]));
      MPI_Bcast(s.data(), degrees_there[0], MPI_INT, rank, MPI_COMM_WORLD);
      MPI_Bcast(d.data(), degrees_there[1], MPI_INT, rank, MPI_COMM_WORLD);
      model.sources.push_back(s);
      model.destinations.push_back(d);
    }
    check_all(comm, model);
    MPI_Comm_free(&comm);
  }
}

void errors() {
  section("errors");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int value = 0, more[8] = {}, kind;
  CHECK_CLASS(MPI_Neighbor_alltoall(&value, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD),
              MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &kind, &kind, &kind),
              MPI_ERR_TOPOLOGY);
  MPI_Comm made = MPI_COMM_WORLD;
  const int outside[] = {size()}, inside[] = {0}, negative[] = {-1};
  const auto adjacent = [&](int in, const int* sources, const int* weights, MPI_Info info) {
    return MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, weights, 0, nullptr,
                                          MPI_UNWEIGHTED, info, 0, &made);
  };
  CHECK_CLASS(adjacent(-1, inside, MPI_UNWEIGHTED, MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(adjacent(1, outside, MPI_UNWEIGHTED, MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(adjacent(1, nullptr, MPI_UNWEIGHTED, MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(adjacent(1, inside, negative, MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(adjacent(1, inside, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL), MPI_ERR_ARG);
  CHECK_CLASS(adjacent(0, nullptr, MPI_UNWEIGHTED, (MPI_Info)MPI_COMM_WORLD), MPI_ERR_INFO);
  CHECK(made == MPI_COMM_NULL);
  CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, inside, negative, inside, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 0, &made),
              MPI_ERR_ARG);

  // Alone, with itself as its only neighbour.
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, inside, MPI_UNWEIGHTED, 1, inside,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, more, 1, MPI_INT, made),
              MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoall(&value, -1, MPI_INT, more, 1, MPI_INT, made), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Neighbor_alltoall(&value, 1, MPI_DATATYPE_NULL, more, 1, MPI_INT, made),
              MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Neighbor_alltoall(more, 1, MPI_INT, more, 1, MPI_INT, made), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Neighbor_alltoall(&value, 1, MPI_INT, more, 2, MPI_INT, made), MPI_ERR_TRUNCATE);
  int weighted = -1;
  MPI_Dist_graph_neighbors_count(made, &kind, &kind, &weighted);
  CHECK_EQ(weighted, 0);
  MPI_Comm_free(&made);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  grids();
  graph();
  adjacent_graphs();
  general_graphs();
  errors();
  return job::report();
}
