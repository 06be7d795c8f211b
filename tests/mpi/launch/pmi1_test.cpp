// The PMI-1 protocol against a manager that answers as real ones do, and as none should.
#include "libmpi_lite/launch/pmi1.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/time.h>

#include <csignal>

#include "drivers/link/types.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/launch/common.hpp"
#include "tests/mpi/launch/fake_manager.hpp"

namespace {

using namespace launch_test;
using namespace std::chrono_literals;
using viaduct::base::SetupError;
using viaduct::mpi::Launch;
using viaduct::mpi::Pmi1;
using viaduct::mpi::Pmi1Message;
using viaduct::mpi::Pmi1Wire;

// The job's name is agreed upon when a process joins.
const Script kAgree = {
    {"cmd=barrier_in", "cmd=barrier_out rc=0\n"},
    {"cmd=get kvsname=job7 key=viaduct-job-0", "cmd=get_result rc=0 msg=success value=0123\n"}};

template <class Action>
std::string what_is_thrown(Action action) {
  try {
    action();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "nothing was thrown";
}
#define EXPECT_SAYS(action, part)                                     \
  do {                                                                \
    const std::string said = what_is_thrown([&] { (void)(action); }); \
    EXPECT_NE(said.find(part), std::string::npos) << said;            \
  } while (0)

// Joins a job whose manager has this to say, and does something in it.
std::unique_ptr<Pmi1> join(FakeManager& manager) {
  const Environment environment(as_hydra(manager.fd()));
  return Pmi1::join();
}

TEST(Pmi1Message, FieldsAreFoundByNameInAnyOrder) {
  const Pmi1Message message("  rc=0   value=a=b=  cmd=get_result\tmsg=success nonsense \r");
  EXPECT_EQ(message.field("cmd"), "get_result");
  EXPECT_EQ(message.field("value"), "a=b=");
  EXPECT_EQ(message.field("msg"), "success");
  EXPECT_FALSE(message.field("nonsense"));
  EXPECT_FALSE(message.field("alue"));
  EXPECT_TRUE(message.ok());
}

TEST(Pmi1Message, AnythingButRcZeroIsNoSuccess) {
  EXPECT_TRUE(Pmi1Message("cmd=x").ok());
  EXPECT_FALSE(Pmi1Message("cmd=x rc=-1").ok());
  EXPECT_FALSE(Pmi1Message("cmd=x rc=").ok());
  EXPECT_FALSE(Pmi1Message("cmd=x rc=00x").ok());
}

TEST(Pmi1Message, MissingAndBadFieldsAreNamed) {
  const Pmi1Message message("cmd=x size=7x");
  EXPECT_SAYS(message.number("size"), "'cmd=x size=7x' has no number after size=");
  EXPECT_SAYS(message.text("rank"), "has no rank=");
}

TEST(Pmi1, JoinsAndKnowsItsPlace) {
  FakeManager manager(greeting() + kAgree);
  const auto job = join(manager);
  EXPECT_EQ(job->rank(), 1);
  EXPECT_EQ(job->size(), 4);
  EXPECT_EQ(job->local_rank(), 1);
  EXPECT_EQ(job->local_size(), 3);
  EXPECT_EQ(job->appnum(), 3);
  EXPECT_EQ(job->universe_size(), 8);
  EXPECT_EQ(job->job_key(), 123u);
}

TEST(Pmi1, LinesMayArriveByteByByte) {
  FakeManager manager(
      greeting() + kAgree +
          Script{{"cmd=get ", "value=" + std::string(900, '=') + " cmd=get_result rc=0\n"}},
      1);
  EXPECT_EQ(join(manager)->get(3, "card"), std::string(900, '='));
}

TEST(Pmi1, ANonblockingDescriptorDoesNotSpinOrFail) {
  FakeManager manager(greeting() + kAgree, 1);
  fcntl(manager.fd(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(join(manager)->job_key(), 123u);
}

TEST(Pmi1, TheDescriptorIsNotInherited) {
  FakeManager manager(greeting() + kAgree);
  const auto job = join(manager);
  EXPECT_TRUE(fcntl(manager.fd(), F_GETFD) & FD_CLOEXEC);
}

TEST(Pmi1, WhatSlurmDoesNotSayIsReadFromTheMapping) {
  auto script = greeting();
  script.push_back({"cmd=get kvsname=job7 key=PMI_process_mapping",
                    "cmd=get_result rc=0 value=(vector,(0,1,1),(1,1,3))\n"});
  FakeManager manager(script + kAgree);
  const Environment environment(as_slurm(manager.fd()));
  const auto job = Pmi1::join();
  EXPECT_EQ(job->local_rank(), 0);
  EXPECT_EQ(job->local_size(), 3);
}

TEST(Pmi1, UnknownNumbersAreMinusOne) {
  auto script = greeting();
  script[3].answer = "cmd=appnum rc=-1\n";
  script[4].answer = "cmd=universe_size size=-2\n";
  FakeManager manager(script + kAgree);
  const auto job = join(manager);
  EXPECT_EQ(job->appnum(), -1);
  EXPECT_EQ(job->universe_size(), -1);
}

TEST(Pmi1, PutsUnderItsOwnName) {
  FakeManager manager(greeting() + kAgree + Script{{"cmd=put", "rc=0 cmd=put_result\n"}});
  join(manager)->put("card", "x=y;z");
  EXPECT_EQ(manager.finish().back(), "cmd=put kvsname=job7 key=card-1 value=x=y;z");
}

TEST(Pmi1, RefusesWhatCannotBeStored) {
  FakeManager manager(greeting() + kAgree);
  const auto job = join(manager);
  EXPECT_THROW(job->put("card", "two words"), viaduct::mpi::Error);
  EXPECT_THROW(job->put("card", "line\n"), viaduct::mpi::Error);
  EXPECT_THROW(job->put("card", ""), viaduct::mpi::Error);
  EXPECT_THROW(job->put("card", std::string(1024, 'x')), viaduct::mpi::Error);
  EXPECT_THROW(job->put("ca rd", "x"), viaduct::mpi::Error);
  EXPECT_THROW(job->put(std::string(62, 'k'), "x"), viaduct::mpi::Error);
  EXPECT_EQ(manager.finish().size(), greeting().size() + kAgree.size());  // nothing was sent
}

TEST(Pmi1, RefusalsOfTheManagerAreSetupErrors) {
  FakeManager manager(greeting() + kAgree +
                      Script{{"cmd=put", "cmd=put_result rc=-1 msg=duplicate_key\n"},
                             {"cmd=get", "cmd=get_result rc=-1 msg=key_not_found\n"},
                             {"cmd=barrier_in", "cmd=barrier_out rc=-1\n"}});
  const auto job = join(manager);
  EXPECT_SAYS(job->put("card", "x"),
              "does not store key 'card-1' ('cmd=put_result rc=-1 msg=duplicate_key')");
  EXPECT_SAYS(job->get(2, "card"), "rank 2 has not put 'card'");
  EXPECT_SAYS(job->fence(), "could not do a barrier");
}

TEST(Pmi1, AManagerOfAnotherVersionIsRefused) {
  FakeManager manager(
      Script{{"cmd=init", "cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0\n"}});
  EXPECT_SAYS(join(manager), "does not accept PMI 1.1");
}

// Wherever the manager dies: one sentence, no hanging, no SIGPIPE.
TEST(Pmi1, AManagerThatVanishesIsAnError) {
  const auto all = greeting() + kAgree;
  for (std::size_t answers = 0; answers < all.size(); ++answers) {
    FakeManager manager(Script{all.begin(), all.begin() + static_cast<std::ptrdiff_t>(answers)});
    EXPECT_SAYS(join(manager), "is gone");
  }
}

TEST(Pmi1, AManagerThatVanishesInTheMiddleOfALineIsAnError) {
  FakeManager manager(Script{{"cmd=init", "cmd=response_to_init rc=0"}});
  EXPECT_SAYS(join(manager), "it closed the connection");
}

TEST(Pmi1, AManagerThatVanishesDuringAFenceIsAnError) {
  FakeManager manager(greeting() + kAgree + Script{{"cmd=barrier_in", ""}});
  const auto job = join(manager);
  EXPECT_SAYS(job->fence(), "was to send cmd=barrier_out: it closed the connection");
}

TEST(Pmi1, AManagerThatIsSilentIsAnError) {
  FakeManager manager(Script{{"cmd=init", ""}, {"never", ""}});
  const Environment environment(as_hydra(manager.fd()));
  EXPECT_SAYS(Pmi1::join(50ms), "has not sent cmd=response_to_init for 50 ms");
}

// A profiler's timer, say.
TEST(Pmi1, SignalsDoNotPutOffTheEndOfTheWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 10'000}, {0, 10'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  FakeManager manager(Script{{"cmd=init", ""}, {"never", ""}});
  const Environment environment(as_hydra(manager.fd()));
  EXPECT_SAYS(Pmi1::join(100ms), "has not sent cmd=response_to_init for 100 ms");
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

// A fence takes as long as the slowest rank.
TEST(Pmi1, AFenceIsNotLimitedByTheTimeout) {
  FakeManager manager(
      Script{{"cmd=barrier_in", "   cmd=barrier_out" + std::string(300, ' ') + "\n"}}, 1);
  Pmi1Wire wire(viaduct::base::UniqueFd(manager.fd()), "of the test", 20ms);
  wire.start("cmd=barrier_in");
  EXPECT_TRUE(wire.expect_untimed("barrier_out").ok());
}

// The answer comes byte by byte, and is looked for more often.
TEST(Pmi1, AFenceInTwoStepsWaitsForNothing) {
  FakeManager manager(greeting() + kAgree + Script{{"cmd=barrier_in", "cmd=barrier_out rc=0\n"}},
                      1);
  const auto job = join(manager);
  job->start_fence();
  int vain = 0;
  for (; !job->fence_passed(); ++vain) std::this_thread::sleep_for(20us);
  EXPECT_GT(vain, 0);
}

TEST(Pmi1, AFenceInTwoStepsFailsWithTheManager) {
  FakeManager manager(
      greeting() + kAgree +
      Script{{"cmd=barrier_in", "cmd=barrier_out rc=-1\n"}, {"cmd=barrier_in", ""}});
  const auto job = join(manager);
  const auto fence = [&] {
    job->start_fence();
    while (!job->fence_passed()) std::this_thread::sleep_for(20us);
  };
  EXPECT_SAYS(fence(), "could not do a barrier");
  EXPECT_SAYS(fence(), "is gone");
}

TEST(Pmi1, SignalsDoNotDisturb) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: system calls return with EINTR
  struct sigaction before {};
  sigaction(SIGUSR1, &action, &before);
  FakeManager manager(greeting() + kAgree, 1);
  std::atomic<bool> over = false;
  std::thread disturber([&over, victim = pthread_self()] {
    while (!over) {
      pthread_kill(victim, SIGUSR1);
      std::this_thread::sleep_for(50us);
    }
  });
  EXPECT_EQ(join(manager)->job_key(), 123u);
  over = true;
  disturber.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(Pmi1, AnotherAnswerThanTheExpectedIsAnError) {
  FakeManager manager(Script{{"cmd=init", "HTTP/1.1 400 Bad Request\n"}});
  EXPECT_SAYS(join(manager), "said 'HTTP/1.1 400 Bad Request' where cmd=response_to_init was due");
}

TEST(Pmi1, ALineWithoutEndIsAnError) {
  FakeManager manager(Script{{"cmd=init", std::string(1 << 20, 'x')}});
  EXPECT_SAYS(join(manager), "lines without end");
}

TEST(Pmi1, NonsenseNumbersAreErrors) {
  auto script = greeting();
  script[1].answer = "cmd=maxes rc=0 keylen_max=many vallen_max=1024\n";
  FakeManager manager(script);
  EXPECT_SAYS(join(manager), "has no number after keylen_max=");
}

TEST(Pmi1, AnImpossiblePlaceIsAnError) {
  for (const auto& [rank, size] : std::vector<std::pair<std::string, std::string>>{
           {"4", "4"}, {"", "4"}, {"0", ""}, {"0", "0"}}) {
    FakeManager manager(Script{});
    auto values = as_hydra(manager.fd());
    values["PMI_RANK"] = rank;
    values["PMI_SIZE"] = size;
    const Environment environment(values);
    EXPECT_SAYS(Pmi1::join(), "says that this is rank");
  }
}

TEST(Pmi1, ItIsNotConnectedToADescriptorThatIsNoSocket) {
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  {
    const Environment environment(as_hydra(file));
    EXPECT_TRUE(Pmi1::announced());
    EXPECT_FALSE(Pmi1::connected());
    EXPECT_SAYS(Pmi1::join(), "is not a socket of this process");
  }
  close(file);
  const Environment environment(as_hydra(file));
  EXPECT_FALSE(Pmi1::connected());
}

TEST(Pmi1, FinalizeWaitsForAllAndSaysGoodbye) {
  FakeManager manager(greeting() + kAgree +
                      Script{{"cmd=barrier_in", "cmd=barrier_out rc=0\n"},
                             {"cmd=finalize", "cmd=finalize_ack rc=0\n"},
                             {"nothing more", ""}});
  const auto job = join(manager);
  job->finalize();
  const auto asked = manager.finish();  // returns: the connection was closed
  EXPECT_EQ(asked.back(), "cmd=finalize");
  EXPECT_EQ(asked[asked.size() - 2], "cmd=barrier_in");
}

TEST(Pmi1, AbortTellsTheManagerAndEnds) {
  FakeManager manager(greeting() + kAgree + Script{{"cmd=abort", ""}});
  const auto job = join(manager);
  EXPECT_EXIT(job->abort(300, "on purpose"), testing::ExitedWithCode(300 & 0xff), "");
  EXPECT_EQ(manager.finish().back(), "cmd=abort exitcode=44");
}

TEST(Pmi1, AbortEndsEvenWithoutAManager) {
  auto manager = std::make_unique<FakeManager>(greeting() + kAgree);
  const auto job = join(*manager);
  manager.reset();
  EXPECT_EXIT(job->abort(256, "on purpose"), testing::ExitedWithCode(1), "");
}

// Hydra's -pmi-port: the process connects and is told who it is.
TEST(Pmi1, ConnectsToAPort) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listening, 1), 0);
  ASSERT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length), 0);

  FakeManager script(Script{{"cmd=initack pmiid=2",
                             "cmd=initack rc=0\ncmd=set size=3\ncmd=set rank=2\n"
                             "cmd=set debug=0\n"}} +
                     greeting() + kAgree);
  std::thread relay([&] {  // between the port and the script
    const int client = accept(listening, nullptr, nullptr);
    std::thread back([&] {
      char c;
      while (read(script.fd(), &c, 1) == 1 && send(client, &c, 1, MSG_NOSIGNAL) == 1) {
      }
      shutdown(client, SHUT_RDWR);
    });
    char c;
    while (read(client, &c, 1) == 1 && send(script.fd(), &c, 1, MSG_NOSIGNAL) == 1) {
    }
    shutdown(script.fd(), SHUT_RDWR);
    back.join();
    close(client);
    close(script.fd());
  });
  auto values = as_hydra(0);
  values["PMI_FD"] = values["PMI_RANK"] = values["PMI_SIZE"] = "";
  values["PMI_PORT"] = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  values["PMI_ID"] = "2";
  {
    const Environment environment(values);
    const auto job = Pmi1::join();
    EXPECT_EQ(job->rank(), 2);
    EXPECT_EQ(job->size(), 3);
    EXPECT_EQ(job->job_key(), 123u);
  }
  relay.join();
  close(listening);
  const Environment environment(values);
  EXPECT_SAYS(Pmi1::join(), "does not answer: Connection refused");
}

TEST(Pmi1, APortThatIsNoneIsAnError) {
  auto values = as_hydra(0);
  values["PMI_FD"] = "";
  for (const std::string port : {"nohost", ":1", "host:"}) {
    values["PMI_PORT"] = port;
    const Environment environment(values);
    EXPECT_SAYS(Pmi1::join(), "is not HOST:PORT");
  }
}

}  // namespace
