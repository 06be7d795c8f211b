// What goes over a Virtual Interface between two processes. A message is a VIPL send, or an RDMA
// write, with immediate data; both ends must agree on all of this.
//
//   immediate data   31         12 11    8 7          0
//                   |   number    | kind  |  credits   |
//
// Credits: so many receive descriptors the sender of the message has posted anew, and more messages
// may be sent to it. The body of a message is the control message itself, without any header.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

enum class ViKind : std::uint8_t {
  control = 1,  // a control message for the sink
  credits = 2,  // nothing but credits; uses none itself
  written = 3,  // an RDMA write that ends a long transfer; the number is the receive's
  piece = 4,    // a part of a long transfer: PieceHead, then the bytes
  close = 5,    // the last message on this Virtual Interface
  hello = 7,    // the first one; the number is kViVersion
  goodbye = 6,  // the process ends; the number is 1 if without MPI_Finalize
};

// What a hello carries: both ends must agree on this file.
constexpr std::uint32_t kViVersion = 1;

constexpr unsigned kViKindShift = 8, kViNumberShift = 12;
constexpr std::uint32_t kViMaxCredits = 0xff, kViMaxNumber = 0xfffff;

constexpr std::uint32_t vi_word(ViKind kind, std::uint32_t credits, std::uint32_t number) {
  return number << kViNumberShift | static_cast<std::uint32_t>(kind) << kViKindShift | credits;
}
constexpr std::uint32_t credits_of(std::uint32_t word) {
  return word & kViMaxCredits;
}
constexpr ViKind kind_of(std::uint32_t word) {
  return static_cast<ViKind>(word >> kViKindShift & 0xf);
}
constexpr std::uint32_t number_of(std::uint32_t word) {
  return word >> kViNumberShift;
}

struct PieceHead {
  std::uint32_t receive = 0;  // the receiver's number
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0, total = 0;  // bytes; of this piece in the transfer, and of that
};

// The content of a RemoteKey: a buffer that is open for one transfer.
struct ViRemoteKey {
  std::uint64_t address = 0, room = 0;  // bytes
  std::uint32_t handle = 0;             // 0: not registered, the data has to come in pieces
  std::uint32_t receive = 0;            // the receiver's number
};
static_assert(sizeof(ViRemoteKey) <= RemoteKey::kMax);

inline ViRemoteKey vi_key_of(const RemoteKey& remote_key) {
  ViRemoteKey key;
  std::memcpy(&key, remote_key.bytes.data(), sizeof key);
  return key;
}

// ---- names of processes when they connect: VIPL's discriminators ------------------------------

using ViDiscriminator = std::array<std::uint8_t, 16>;
// Peer requests: "VMPI", the job's key, and the rank that the request is for.
inline constexpr std::array<std::uint8_t, 4> kViPeers{'V', 'M', 'P', 'I'};
// Client and server: "VMPC", the job's key, and the rank of the client.
inline constexpr std::array<std::uint8_t, 4> kViClients{'V', 'M', 'P', 'C'};

inline ViDiscriminator vi_discriminator(const std::array<std::uint8_t, 4>& kind, std::uint64_t key,
                                        int rank) {
  ViDiscriminator d{};
  const auto number = static_cast<std::uint32_t>(rank);
  std::memcpy(d.data(), kind.data(), kind.size());
  std::memcpy(d.data() + 4, &key, sizeof key);
  std::memcpy(d.data() + 12, &number, sizeof number);
  return d;
}
inline std::uint32_t vi_rank_of(const std::uint8_t* discriminator) {
  std::uint32_t number = 0;
  std::memcpy(&number, discriminator + 12, sizeof number);
  return number;
}

}  // namespace viaduct::mpi
