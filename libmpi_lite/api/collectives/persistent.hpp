// Persistent collectives (MPI 5.0, section 6.13): requests that start the same operation as often
// as the program likes.
//
// Ranks may start their persistent collectives in different orders, while the operations of a
// communicator are told apart by their order (CollectiveTag). So each persistent request has a
// communicator of its own, which its ranks agree on when they make it: MPI_X_init synchronizes.
//
// The program may free its handles of types and operations after MPI_X_init. So the request has
// handles of its own of them.
#pragma once

#include <memory>
#include <vector>

#include "libmpi_lite/api/arguments/collective_arguments.hpp"
#include "libmpi_lite/collective/construction.hpp"
#include "libmpi_lite/transfer/parts/composite.hpp"

namespace viaduct::mpi {

// Handles of datatypes that the program does not know, in place of its own, and references to
// operations; until the object ends.
class HeldObjects {
 public:
  HeldObjects() = default;
  HeldObjects(const HeldObjects&) = delete;
  HeldObjects& operator=(const HeldObjects&) = delete;
  ~HeldObjects();

  void hold(MPI_Datatype& type);
  void hold(Part& part) { hold(part.type); }
  void hold(Parts& parts) { hold(parts.type); }
  void hold(MixedParts& parts);
  void hold(std::reference_wrapper<const Op> op) { ops_.emplace_back(const_cast<Op*>(&op.get())); }
  template <class Other>
  void hold(const Other&) {}  // arguments that hold nothing

 private:
  std::vector<MPI_Datatype> types_;
  std::vector<std::unique_ptr<MPI_Datatype[]>> arrays_;  // copies of arrays of types
  std::vector<Ref<Op>> ops_;
};

template <auto kStart>
class PersistentCollective final : public Composite {
 public:
  // Collective over `comm`. Throws Error.
  PersistentCollective(Comm& comm, const Checked<kStart>& arguments)
      : Composite(&comm, true), arguments_(arguments), own_(duplicate(comm)) {
    own_->name = comm.name;
    arguments_.for_each([&](auto& argument) { held_.hold(argument); });
  }

 private:
  void start_parts() override { run({arguments_.start(*own_)}); }

  Checked<kStart> arguments_;
  HeldObjects held_;
  const Ref<Comm> own_;
};

template <auto kStart>
Ref<Request> make_persistent(Comm& comm, const Checked<kStart>& arguments) {
  return make<PersistentCollective<kStart>>(comm, arguments);
}

}  // namespace viaduct::mpi
