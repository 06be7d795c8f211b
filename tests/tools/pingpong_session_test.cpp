// What the two sides of viaduct-pingpong say to each other, where some of it gets lost.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "tools/pingpong/session.hpp"

namespace viaduct::pingpong {
namespace {

using namespace std::chrono_literals;

// Orders one way, answers the other.
struct Channel {
  bool lossy = true;
  std::function<bool(const Answer&)> loses = [](const Answer&) { return false; };

  std::mutex mutex;
  std::deque<Order> orders;
  std::deque<Answer> answers;
};

class End final : public Control {
 public:
  explicit End(Channel& channel) : channel_(channel) {}

  void answer(const Answer& answer) override {
    if (!channel_.loses(answer)) put(channel_.answers, answer);
  }
  bool lossy() const override { return channel_.lossy; }

 protected:
  void send(const Order& order) override { put(channel_.orders, order); }
  bool receive(Order& order) override { return take(channel_.orders, order); }
  bool receive(Answer& answer) override { return take(channel_.answers, answer); }

 private:
  template <class T>
  void put(std::deque<T>& queue, const T& item) {
    const std::lock_guard lock(channel_.mutex);
    queue.push_back(item);
  }
  template <class T>
  bool take(std::deque<T>& queue, T& item) {
    {
      const std::lock_guard lock(channel_.mutex);
      if (!queue.empty()) {
        item = queue.front();
        queue.pop_front();
        return true;
      }
    }
    std::this_thread::sleep_for(1ms);
    return false;
  }

  Channel& channel_;
};

constexpr std::uint32_t kHello = 1, kBye = 2;  // numbers of the orders

// A session in which nothing is measured.
void meet_and_part(Channel& channel) {
  Side client_side{SideConfig{}}, server_side{SideConfig{}};
  End client(channel), server(channel);
  auto served = std::async(std::launch::async, [&] { serve(server_side, server, 10s); });
  EXPECT_NO_THROW(remote_session(client_side, client, true)->end());
  EXPECT_NO_THROW(served.get());
}

TEST(PingpongSession, OrdersWhoseAnswersGetLostAreRepeated) {
  for (const std::uint32_t order : {kHello, kBye}) {
    Channel channel;
    int lost = 0;
    channel.loses = [&](const Answer& answer) { return answer.sequence == order && lost++ < 3; };
    meet_and_part(channel);
    EXPECT_GE(lost, 4) << "three lost and one that arrived; order " << order;
  }
}

// Over a socket nothing gets lost, and who waits for more finds that the other side has gone.
TEST(PingpongSession, OverASocketTheServerEndsWithTheFarewell) {
  Channel channel;
  channel.lossy = false;
  Side side{SideConfig{}};
  End client(channel), server(channel);
  Order bye;
  bye.what = Order::What::bye;
  channel.orders = {bye, bye};
  serve(side, server, 10s);
  EXPECT_EQ(channel.orders.size(), 1u);
}

}  // namespace
}  // namespace viaduct::pingpong
