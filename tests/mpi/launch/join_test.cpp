// Which ranks share a host, jobs without any manager, and which manager counts.
#include "libmpi_lite/launch/process_mapping.hpp"

#include <gtest/gtest.h>

#include "drivers/link/types.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/launch/single.hpp"
#include "tests/mpi/launch/fake_manager.hpp"

namespace {

using viaduct::base::SetupError;
using viaduct::mpi::hosts_of_ranks;
using viaduct::mpi::Single;
using Hosts = std::vector<int>;

TEST(ProcessMapping, Blocks) {
  EXPECT_EQ(hosts_of_ranks("(vector,(0,2,2))", 4), (Hosts{0, 0, 1, 1}));
  EXPECT_EQ(hosts_of_ranks("(vector,(0,2,2),(2,1,3))", 7), (Hosts{0, 0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(hosts_of_ranks("(vector,(3,1,1),(0,1,2))", 3), (Hosts{3, 0, 0}));
}

TEST(ProcessMapping, ItStartsAnewAndIsCut) {
  EXPECT_EQ(hosts_of_ranks("(vector,(0,2,1))", 5), (Hosts{0, 1, 0, 1, 0}));
  EXPECT_EQ(hosts_of_ranks("(vector,(0,1,1000000000))", 2), (Hosts{0, 0}));
  EXPECT_EQ(hosts_of_ranks("(vector,(2147483647,1,1))", 1), (Hosts{2147483647}));
}

TEST(ProcessMapping, AnythingElseIsRefused) {
  for (const char* text :
       {"", "(vector", "(vector)", "(vector,(0,0,0))", "(vector,(0,2,0))", "(vector,(0,1,1)",
        "(vector,(0,1,1))x", "(vector,(0,1))", "(vector,(0,-1,1))", "(vector,(a,1,1))", "(tree,0)",
        "(vector,(99999999999,1,1))", "none"})
    EXPECT_THROW(hosts_of_ranks(text, 3), SetupError) << text;
}

TEST(Single, IsAJobOfItsOwn) {
  Single one, two;
  EXPECT_NE(one.job_key(), two.job_key());
  one.put("card", "x=1");
  one.fence();
  EXPECT_EQ(one.get(0, "card"), "x=1");
  EXPECT_THROW(one.get(0, "other"), SetupError);
  EXPECT_THROW(one.get(1, "card"), SetupError);
  EXPECT_THROW(one.put("card", "a b"), viaduct::mpi::Error);
  one.finalize();
  EXPECT_EXIT(one.abort(5, "on purpose"), testing::ExitedWithCode(5), "");
  EXPECT_EXIT(one.abort(0, "on purpose"), testing::ExitedWithCode(1), "");
}

TEST(Join, WithoutAManagerItIsAJobOfOne) {
  auto values = launch_test::as_hydra(0);
  for (auto& [name, value] : values) value.clear();
  const launch_test::Environment environment(values);
  EXPECT_STREQ(viaduct::mpi::join_job()->name(), "single");
}

// As launchers leave it that the library does not understand.
TEST(Join, TheFirstOfSeveralLoneProcessesSaysSo) {
  const auto said = [](const char* size, const char* processes, const char* rank,
                       const char* number) {
    auto values = launch_test::as_hydra(0);
    for (auto& [name, value] : values) value.clear();
    values[size] = processes;
    values[rank] = number;
    const launch_test::Environment environment(values);
    testing::internal::CaptureStderr();
    EXPECT_STREQ(viaduct::mpi::join_job()->name(), "single");
    return testing::internal::GetCapturedStderr();
  };
  for (const auto& [size, rank] : {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                   {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                   {"PMI_SIZE", "PMI_RANK"}}) {
    EXPECT_NE(said(size, "4", rank, "0").find(" started 4 processes and did not connect them"),
              std::string::npos)
        << size;
    EXPECT_EQ(said(size, "4", rank, "3"), "");
    EXPECT_EQ(said(size, "1", rank, "0"), "");
  }
  // A batch script of Slurm starts one process although there is room for more.
  EXPECT_EQ(said("SLURM_NTASKS", "4", "SLURM_PROCID", "0"), "");
}

// A job that was started by a process of another job has that one's variables, too.
TEST(Join, TheOpenConnectionDecides) {
  using launch_test::Script;
  launch_test::FakeManager manager(launch_test::greeting() +
                                   Script{{"cmd=barrier_in", "cmd=barrier_out\n"},
                                          {"cmd=get", "cmd=get_result rc=0 value=0123\n"}});
  auto values = launch_test::as_hydra(manager.fd());
  values["PMIX_NAMESPACE"] = "outer";
  const launch_test::Environment environment(values);
  EXPECT_STREQ(viaduct::mpi::join_job()->name(), "pmi1");
}

}  // namespace
