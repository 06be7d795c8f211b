// The requests of PMI-1 and what their answers mean. pmi1_wire.cpp sends and receives the lines;
// process_mapping.cpp reads the manager's account of which ranks share a host.
#include "libmpi_lite/launch/pmi1.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "drivers/link/types.hpp"
#include "libmpi_lite/launch/common.hpp"
#include "libmpi_lite/launch/process_mapping.hpp"

namespace viaduct::mpi {
namespace {

// Hydra may be asked to let the processes connect by themselves (mpiexec -pmi-port). Then a process
// tells its number (PMI_ID), and the manager answers with three lines more, one for each value.
struct RankAndSize {
  int rank, size;  // -1: the manager has not told
};
RankAndSize identify(Pmi1Wire& wire) {
  const auto id = environment_number("PMI_ID");
  if (!id)
    throw base::SetupError("PMI_PORT is set and PMI_ID is not; was this started by mpiexec?");
  if (const auto ack = wire.ask("cmd=initack pmiid=" + std::to_string(*id), "initack"); !ack.ok())
    throw base::SetupError("the process manager does not know PMI_ID=" + std::to_string(*id) +
                           " ('" + ack.line() + "')");
  RankAndSize identity{-1, -1};
  for (int lines = 0; lines < 3; ++lines) {  // size, rank and debug, in any order
    const auto message = wire.expect("set");
    if (message.field("rank")) identity.rank = message.number("rank");
    if (message.field("size")) identity.size = message.number("size");
  }
  return identity;
}

constexpr std::string_view kFenceAnswer = "barrier_out";

void check_fence(const Pmi1Message& response) {
  if (!response.ok())
    throw base::SetupError("the process manager could not do a barrier ('" + response.line() +
                           "')");
}

// PMI-1 has one key-value space for the whole job, so the rank becomes a part of the key.
std::string key_of(int rank, std::string_view key) {
  return std::string(key) + '-' + std::to_string(rank);
}

}  // namespace

bool Pmi1::connected() {
  const auto fd = environment_number("PMI_FD");
  struct stat what;
  return fd && fstat(*fd, &what) == 0 && S_ISSOCK(what.st_mode);
}

bool Pmi1::announced() {
  return std::getenv("PMI_FD") != nullptr || std::getenv("PMI_PORT") != nullptr;
}

std::unique_ptr<Pmi1> Pmi1::join(std::chrono::milliseconds timeout) {
  const auto fd = environment_number("PMI_FD");
  if (fd && !connected())
    throw base::SetupError(
        "PMI_FD=" + std::to_string(*fd) +
        " is not a socket of this process; was it started by mpiexec or srun, and "
        "does nothing in between close its descriptors?");
  auto job = std::unique_ptr<Pmi1>(
      new Pmi1(fd ? Pmi1Wire(base::UniqueFd(*fd), "at PMI_FD=" + std::to_string(*fd), timeout)
                  : Pmi1Wire::connect(std::getenv("PMI_PORT"), timeout)));
  job->find_rank();
  job->initialise();
  job->find_local_rank();
  job->identity_.job_key = agree_on_job_key(*job);
  return job;
}

void Pmi1::find_rank() {
  // Over PMI_FD the manager knows which process has the socket, and has told the process in the
  // environment. Over PMI_PORT it has to be told.
  if (std::getenv("PMI_FD") == nullptr) {
    const RankAndSize told = identify(wire_);
    identity_.rank = told.rank;
    identity_.size = told.size;
  } else {
    identity_.rank = environment_number("PMI_RANK").value_or(-1);
    identity_.size = environment_number("PMI_SIZE").value_or(-1);
  }
  if (rank() < 0 || rank() >= size())
    throw base::SetupError("the process manager says that this is rank " + std::to_string(rank()) +
                           " of " + std::to_string(size()) + " (-1: it does not say)");
}

void Pmi1::initialise() {
  if (const auto response =
          wire_.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
      !response.ok())
    throw base::SetupError("the process manager does not accept PMI 1.1 ('" + response.line() +
                           "')");
  const auto limits = wire_.ask("cmd=get_maxes", "maxes");
  // The maxima count the end of a C string. The rank takes a part of the key; the size has at least
  // as many digits as any rank.
  max_key_ = limits.number("keylen_max") - 1 - static_cast<int>(key_of(size(), "").size());
  max_value_ = limits.number("vallen_max") - 1;
  kvs_name_ = wire_.ask("cmd=get_my_kvsname", "my_kvsname").text("kvsname");
  identity_.appnum = ask_number("get_appnum", "appnum", "appnum");
  identity_.universe_size = ask_number("get_universe_size", "universe_size", "size");
}

int Pmi1::ask_number(std::string_view what, std::string_view answer, std::string_view field) {
  const auto response = wire_.ask("cmd=" + std::string(what), answer);
  return response.ok() && response.field(field) ? std::max(response.number(field), -1) : -1;
}

// Hydra tells the local rank in the environment. Other managers tell the whole mapping of ranks to
// hosts in the key-value space.
void Pmi1::find_local_rank() {
  const auto rank = environment_number("MPI_LOCALRANKID");
  const auto size = environment_number("MPI_LOCALNRANKS");
  if (rank && size && *rank < *size) {
    identity_.local_rank = *rank;
    identity_.local_size = *size;
    return;
  }
  const auto mapping = lookup("PMI_process_mapping");
  if (!mapping.ok())
    throw base::SetupError("the process manager does not say which processes share a host ('" +
                           mapping.line() + "' instead of PMI_process_mapping)");
  const auto hosts = hosts_of_ranks(mapping.text("value"), identity_.size);
  const auto mine = hosts.begin() + identity_.rank;
  identity_.local_rank = static_cast<int>(std::count(hosts.begin(), mine, *mine));
  identity_.local_size = static_cast<int>(std::count(hosts.begin(), hosts.end(), *mine));
}

void Pmi1::put(std::string_view key, std::string_view value) {
  check_key_value(key, value, static_cast<std::size_t>(std::max(max_key_, 0)),
                  static_cast<std::size_t>(std::max(max_value_, 0)));
  const auto response = wire_.ask("cmd=put kvsname=" + kvs_name_ + " key=" + key_of(rank(), key) +
                                      " value=" + std::string(value),
                                  "put_result");
  if (!response.ok())
    throw base::SetupError("the process manager does not store key '" + key_of(rank(), key) +
                           "' ('" + response.line() + "')");
}

void Pmi1::fence() {
  start_fence();
  check_fence(wire_.expect_untimed(kFenceAnswer));
}

void Pmi1::start_fence() {
  wire_.start("cmd=barrier_in");
}

bool Pmi1::fence_passed() {
  const auto response = wire_.take(kFenceAnswer);
  if (response) check_fence(*response);
  return response.has_value();
}

Pmi1Message Pmi1::lookup(std::string_view key) {
  return wire_.ask("cmd=get kvsname=" + kvs_name_ + " key=" + std::string(key), "get_result");
}

std::string Pmi1::get(int rank, std::string_view key) {
  const auto response = lookup(key_of(rank, key));
  if (!response.ok())
    throw base::SetupError("rank " + std::to_string(rank) + " has not put '" + std::string(key) +
                           "' (the process manager says '" + response.line() + "')");
  return response.text("value");
}

void Pmi1::finalize() {
  // The manager takes a process that ends while others still need it for a failed one, so wait for
  // all.
  fence();
  wire_.ask("cmd=finalize", "finalize_ack");
  wire_.close();
}

// The manager reads what was sent even when its sender has ended, and does not answer: so there is
// no reason to wait. If the request cannot be sent, the manager sees a process fail with this
// status, and ends the job for that reason.
void Pmi1::abort(int exit_code, std::string_view) {
  const int status = exit_status(exit_code);
  wire_.send_only("cmd=abort exitcode=" + std::to_string(status));
  _exit(status);
}

}  // namespace viaduct::mpi
