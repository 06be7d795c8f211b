#include "tests/vipl/programs/support/random_writes.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace viaduct::vipl_test {

namespace {

// A slot is data and, behind it, the flag: the number of the last round that is complete.
constexpr std::size_t kData = 96 * 1024, kFlag = sizeof(std::uint64_t), kSlot = kData + 64;
constexpr std::size_t kMaxWrites = 5, kMaxPieces = Memory::kSegments - 1;
// Pieces lie apart in the source.
constexpr std::size_t kGap = 24, kSource = kData + kFlag + (kMaxPieces + 1) * kGap;

using Clock = std::chrono::steady_clock;

std::uint64_t load_flag(const std::byte* at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_acquire);
}

}  // namespace

VIP_VI_ATTRIBUTES open_to_writes() {
  VIP_VI_ATTRIBUTES out = vi_attributes();
  out.MaxTransferSize = 1 << 20;
  out.EnableRdmaWrite = VIP_TRUE;
  return out;
}

RandomWrites::RandomWrites(const Nic& nic, std::size_t number)
    : number_(number),
      memory_(nic, 1, 2 * kSlot, memory_attributes(nullptr, true)),
      source_(nic, kMaxWrites + 2, kSource) {
  for (auto& slot : expected_) slot.assign(kData, std::byte{0});
}

WriteTarget RandomWrites::target() const {
  return {reinterpret_cast<VIP_UINT64>(memory_.buffer(0)), memory_.handle()};
}

// Sizes of all magnitudes, cut into pieces of any size, none included; they may overlap, because
// writes of one VI are placed in their order.
RandomWrites::Round RandomWrites::plan(std::size_t round) const {
  std::mt19937 random(static_cast<std::mt19937::result_type>(1 + round * kRandomVis + number_));
  const auto below = [&](std::size_t n) { return random() % n; };
  Round out;
  out.flag_is_in_the_last = below(2) == 0;
  out.writes.resize(1 + below(kMaxWrites));
  for (Write& write : out.writes) {
    const std::size_t size = 1 + below(std::size_t{1} << (1 + below(16)));
    std::vector<std::size_t> cuts{0, size};
    for (std::size_t n = below(kMaxPieces); n != 0; --n) cuts.push_back(below(size + 1));
    std::ranges::sort(cuts);
    // The flag takes one.
    while (cuts.size() > kMaxPieces) cuts.erase(cuts.begin() + 1);
    for (std::size_t i = 1; i < cuts.size(); ++i) write.pieces.push_back(cuts[i] - cuts[i - 1]);
    const bool is_last = &write == &out.writes.back();
    write.offset = is_last && out.flag_is_in_the_last ? kData - size : below(kData - size + 1);
    for (std::size_t i = 0; i < size; ++i) write.bytes.push_back(static_cast<std::byte>(random()));
  }
  return out;
}

void RandomWrites::gather(VIP_DESCRIPTOR* d, std::size_t buffer, const Write& write) const {
  std::byte* to = source_.buffer(buffer);
  const std::byte* from = write.bytes.data();
  d->CS.SegCount = 1;
  d->CS.Length = 0;
  for (const std::size_t piece : write.pieces) {
    std::copy_n(from, piece, to);
    VIP_DATA_SEGMENT& segment = d->DS[d->CS.SegCount++].Local;
    segment = {{}, source_.handle(), static_cast<VIP_UINT32>(piece)};
    segment.Data.Address = to;
    d->CS.Length += segment.Length;
    from += piece;
    to += piece + kGap - piece % 8;
  }
}

std::string RandomWrites::post_round(VIP_VI_HANDLE vi, const WriteTarget& to, std::size_t round) {
  Round plan = this->plan(round);
  const auto* const slot = reinterpret_cast<std::byte*>(to.address) + round % 2 * kSlot;
  const std::uint64_t number = round + 1;
  if (plan.flag_is_in_the_last) {
    Write& last = plan.writes.back();
    last.pieces.push_back(kFlag);
    last.bytes.resize(last.bytes.size() + kFlag);
    std::memcpy(last.bytes.data() + last.bytes.size() - kFlag, &number, kFlag);
  } else {
    Write flag{kData, {kFlag}, std::vector<std::byte>(kFlag)};
    std::memcpy(flag.bytes.data(), &number, kFlag);
    plan.writes.push_back(std::move(flag));
  }
  for (std::size_t i = 0; i < plan.writes.size(); ++i) {
    const Write& write = plan.writes[i];
    VIP_DESCRIPTOR* const d =
        source_.rdma(i, 1, VIP_CONTROL_OP_RDMAWRITE, slot + write.offset, to.handle);
    gather(d, i, write);
    if (VipPostSend(vi, d, source_.handle()) != VIP_SUCCESS) return "cannot be posted";
  }
  for (std::size_t i = 0; i < plan.writes.size(); ++i)
    if (next_sent(vi) != source_.raw(i) || errors(source_.raw(i)) != 0) return "failed";
  return {};
}

std::string RandomWrites::wait_for_answer(std::size_t round) const {
  const auto end = Clock::now() + std::chrono::milliseconds(kSoon);
  while (load_flag(memory_.buffer(0) + kData) < round + 1) {
    if (Clock::now() > end) return "was not answered";
    std::this_thread::yield();
  }
  return {};
}

std::string RandomWrites::write(VIP_VI_HANDLE vi, const WriteTarget& to) {
  for (std::size_t round = 0; round < kRounds; ++round) {
    // The slot is free when the round before the last one was checked.
    std::string wrong = round >= 2 ? wait_for_answer(round - 2) : std::string{};
    if (wrong.empty()) wrong = post_round(vi, to, round);
    if (!wrong.empty())
      return "VI " + std::to_string(number_) + ", round " + std::to_string(round) + ": " + wrong;
  }
  return wait_for_answer(kRounds - 1);
}

std::string RandomWrites::difference(std::size_t round, std::size_t slot) const {
  const std::byte* const here = memory_.buffer(0) + slot * kSlot;
  const auto [mine, there] = std::mismatch(expected_[slot].begin(), expected_[slot].end(), here);
  if (mine == expected_[slot].end()) return {};
  return "VI " + std::to_string(number_) + ", round " + std::to_string(round) + ": byte " +
         std::to_string(mine - expected_[slot].begin()) + " is " +
         std::to_string(std::to_integer<int>(*there)) + ", not " +
         std::to_string(std::to_integer<int>(*mine));
}

bool RandomWrites::check(VIP_VI_HANDLE vi, const WriteTarget& from) {
  const std::size_t slot = round_ % 2;
  if (load_flag(memory_.buffer(0) + slot * kSlot + kData) != round_ + 1) return false;
  for (const Write& write : plan(round_).writes)
    std::ranges::copy(write.bytes,
                      expected_[slot].begin() + static_cast<std::ptrdiff_t>(write.offset));
  wrong_ = difference(round_, slot);
  if (!wrong_.empty()) return true;
  const std::uint64_t answer = ++round_;
  std::memcpy(source_.buffer(0), &answer, kFlag);
  VIP_DESCRIPTOR* const d =
      source_.rdma(0, kFlag, VIP_CONTROL_OP_RDMAWRITE,
                   reinterpret_cast<std::byte*>(from.address) + kData, from.handle);
  if (VipPostSend(vi, d, source_.handle()) != VIP_SUCCESS || next_sent(vi) != d || errors(d) != 0)
    wrong_ = "the answer failed";
  return true;
}

std::string check_all(std::vector<std::unique_ptr<RandomWrites>>& all,
                      const std::vector<VIP_VI_HANDLE>& vis, const std::vector<WriteTarget>& from) {
  auto end = Clock::now() + std::chrono::milliseconds(kSoon);
  for (;;) {
    bool any = false, done = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->checked_all()) continue;
      done = false;
      any |= all[i]->check(vis[i], from[i]);
      if (!all[i]->wrong().empty()) return all[i]->wrong();
    }
    if (done) return {};
    if (any) end = Clock::now() + std::chrono::milliseconds(kSoon);
    if (Clock::now() > end) return "a flag did not come";
    std::this_thread::yield();
  }
}

std::string write_all(std::vector<std::unique_ptr<RandomWrites>>& all,
                      const std::vector<VIP_VI_HANDLE>& vis, const std::vector<WriteTarget>& to) {
  std::vector<std::string> wrong(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] { wrong[i] = all[i]->write(vis[i], to[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& it : wrong)
    if (!it.empty()) return it;
  return {};
}

}  // namespace viaduct::vipl_test
