// Nodes with an MBCF engine each on the simulated network, for the tests in this directory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "drivers/mbcf/engine.hpp"
#include "tests/support/driver_bed.hpp"

namespace viaduct::mbcf {

// Of requests that nobody waits for.
inline constexpr Options kSilentBatch{.urgency = link::Urgency::batch, .silent = true};

struct SimNodeConfig {
  EngineConfig engine;
  std::size_t memory = 1 << 20;
};

struct SimNode : link::test::NodeMemory {
  SimNode(sim::SimPort& p, const link::LinkConfig& link_config, const SimNodeConfig& config)
      : NodeMemory(config.memory), port(p), link(p, link_config), engine(link, config.engine) {
    all = engine.export_segment(memory, Rights::all);
  }
  void poll(link::Time now) { engine.poll(now); }
  std::uint64_t count(Counter c) const { return engine.counters()[c]; }
  std::span<std::byte> bytes(std::size_t offset, std::size_t length) {
    return std::span(memory).subspan(offset, length);
  }
  // Bytes of the memory that are not 0.
  std::size_t written() const {
    return memory.size() -
           static_cast<std::size_t>(std::count(memory.begin(), memory.end(), std::byte{0}));
  }
  template <class Word>
  Word word(std::size_t offset) const {
    Word value;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }

  sim::SimPort& port;
  link::Link<sim::SimPort> link;
  Engine<sim::SimPort> engine;
  Key all;  // the memory, with all rights
};

using BedConfig = link::test::BedConfigOf<SimNodeConfig>;

class Bed : public link::test::BedOf<SimNode, SimNodeConfig> {
 public:
  using BedOf::BedOf;

  // Node `of`'s memory as node `at` names it.
  Remote remote(std::size_t at, std::size_t of, std::uint64_t offset = 0) {
    return {peer(at, of), (*this)[of].all, offset};
  }
  // Issues until it is taken, then waits for its completion at node `at`.
  template <class Issue>
  Completion complete(std::size_t at, Issue issue) {
    Completion completion{};
    Issued issued;
    const bool taken = run([&] {
      issued = issue();
      return issued.status != Status::no_room;
    });
    EXPECT_TRUE(taken) << "never taken";
    if (!taken || issued.status != Status::ok) return {{}, issued.status, {}, 0, 0};
    EXPECT_TRUE(run([&] { return (*this)[at].engine.next_completion(completion); }))
        << "never completed";
    EXPECT_EQ(completion.id, issued.id);
    return completion;
  }
  // A writer that has credit.
  WriterId writer(std::size_t at, std::size_t of, const Fifo& fifo) {
    const WriterId id = (*this)[at].engine.open_writer(peer(at, of), fifo.key(), now());
    EXPECT_TRUE(run([&] { return (*this)[at].engine.capacity(id) != 0; }));
    return id;
  }
};

inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(const Entry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

}  // namespace viaduct::mbcf
