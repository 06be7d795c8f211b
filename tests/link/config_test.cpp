#include "drivers/link/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <set>

#include "drivers/base/fault_injector.hpp"
#include "drivers/endpoint/endpoint.hpp"
#include "drivers/link/wire_format.hpp"
#include "drivers/port/config_vars.hpp"

namespace viaduct::link {
namespace {

using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;
using namespace std::chrono_literals;

const std::array kTables{port::config_vars(), config_vars()};

class ConfigVars : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& name : base::unknown_config_vars({})) unsetenv(name.c_str());
  }
  void TearDown() override { SetUp(); }

  static void set(const char* name, const char* value) { setenv(name, value, 1); }

  template <class Function>
  static std::string refusal(Function function) {
    try {
      function();
    } catch (const base::SetupError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ConfigVars, TableIsComplete) {
  std::set<std::string_view> names;
  for (const base::ConfigTable& table : kTables)
    for (const base::ConfigVar& var : table) {
      EXPECT_TRUE(var.name.starts_with("VIADUCT_")) << var.name;
      EXPECT_FALSE(var.meaning.empty()) << var.name;
      EXPECT_TRUE(names.insert(var.name).second) << var.name << " twice";
      EXPECT_EQ(table.text(var.name), var.default_value) << "is accepted";
    }
  EXPECT_THAT(refusal([] { config_vars().text("VIADUCT_NO_SUCH"); }), HasSubstr("VIADUCT_NO_SUCH"));
}

TEST_F(ConfigVars, DefaultsOfTheTableAreThoseOfTheCode) {
  const LinkConfig config = link_config_from_environment(), code;
  EXPECT_EQ(config.job_key, code.job_key);
  EXPECT_EQ(config.checksum, code.checksum);
  EXPECT_EQ(config.max_window, code.max_window);
  EXPECT_EQ(config.ack_delay, code.ack_delay);
  EXPECT_EQ(config.min_timeout, code.min_timeout);
  EXPECT_EQ(config.max_timeout, code.max_timeout);
  EXPECT_EQ(config.dead_after, code.dead_after);
  EXPECT_FALSE(base::FaultSpec::parse(port::config_vars().text("VIADUCT_FAULTS")).any());
}

TEST_F(ConfigVars, ReachTheLinksConfiguration) {
  set("VIADUCT_JOB", "42");
  set("VIADUCT_CHECKSUM", "off");
  set("VIADUCT_MAX_WINDOW", "17");
  set("VIADUCT_ACK_DELAY_US", "3");
  set("VIADUCT_MIN_TIMEOUT_US", "200000");
  set("VIADUCT_DEAD_AFTER_MS", "70");
  const LinkConfig config = link_config_from_environment();
  EXPECT_EQ(config.job_key, 42u);
  EXPECT_FALSE(config.checksum);
  EXPECT_EQ(config.max_window, 17u);
  EXPECT_EQ(config.ack_delay, 3us);
  EXPECT_EQ(config.min_timeout, 200ms);
  EXPECT_GE(config.max_timeout, config.min_timeout);
  EXPECT_EQ(config.dead_after, 70ms);
}

TEST_F(ConfigVars, AJobIsANumberOrAnyText) {
  set("VIADUCT_JOB", "nightly run 7");
  const auto key = link_config_from_environment().job_key;
  EXPECT_EQ(key, link_config_from_environment().job_key);
  EXPECT_EQ(key, 0x71263c6a8213d106u) << "the same on every machine and in every version";
  set("VIADUCT_JOB", "nightly run 8");
  EXPECT_NE(key, link_config_from_environment().job_key);
  set("VIADUCT_JOB", "18446744073709551615");
  EXPECT_EQ(link_config_from_environment().job_key, ~std::uint64_t{0});
}

TEST_F(ConfigVars, EveryLifeHasItsOwnIncarnationAndSeed) {
  const LinkConfig a = link_config_from_environment(), b = link_config_from_environment();
  EXPECT_NE(a.incarnation, b.incarnation);
  EXPECT_NE(a.seed, b.seed);
  EXPECT_NE(a.incarnation, 0u);
}

TEST_F(ConfigVars, TheUsersWordIsToldFromTheDefault) {
  EXPECT_FALSE(config_vars().is_set("VIADUCT_DEAD_AFTER_MS"));
  set("VIADUCT_DEAD_AFTER_MS", "5000");
  EXPECT_TRUE(config_vars().is_set("VIADUCT_DEAD_AFTER_MS"));
  EXPECT_THAT(refusal([] { config_vars().is_set("VIADUCT_NO_SUCH"); }),
              HasSubstr("VIADUCT_NO_SUCH"));
}

TEST_F(ConfigVars, SetToNothingIsNotSet) {
  set("VIADUCT_MAX_WINDOW", "");
  EXPECT_FALSE(config_vars().is_set("VIADUCT_MAX_WINDOW"));
  EXPECT_EQ(config_vars().number("VIADUCT_MAX_WINDOW"), 256u);
}

TEST_F(ConfigVars, BadNumbersAreNamedWithWhatWouldDo) {
  for (const auto* bad :
       {"x", "-1", "1.5", " 7", "7 ", "7x", "16777217", "511", "99999999999999999999"}) {
    set("VIADUCT_FRAMES", bad);
    EXPECT_THAT(
        refusal([] { port::config_vars().number("VIADUCT_FRAMES"); }),
        AllOf(HasSubstr("VIADUCT_FRAMES=" + std::string(bad)), HasSubstr("512 to 16777216")))
        << bad;
  }
  for (const std::uint64_t good : {512, 16777216}) {
    set("VIADUCT_FRAMES", std::to_string(good).c_str());
    EXPECT_EQ(port::config_vars().number("VIADUCT_FRAMES"), good);
  }
}

TEST_F(ConfigVars, WordsAreThoseOfTheTable) {
  for (const auto* bad : {"a", "auto|huge", "hug", "Huge", "auto "}) {
    set("VIADUCT_MEMORY", bad);
    EXPECT_THAT(
        refusal([] { port::config_vars().text("VIADUCT_MEMORY"); }),
        AllOf(HasSubstr("VIADUCT_MEMORY=" + std::string(bad)), HasSubstr("auto|huge|nohuge")))
        << bad;
    EXPECT_EQ(port::config_vars().value("VIADUCT_MEMORY"), bad);
  }
  for (const auto* good : {"auto", "huge", "nohuge"}) {
    set("VIADUCT_MEMORY", good);
    EXPECT_EQ(port::config_vars().text("VIADUCT_MEMORY"), good);
  }
}

TEST_F(ConfigVars, AWordOrANumber) {
  for (const auto* bad : {"575", "x", "70000"}) {
    set("VIADUCT_MTU", bad);
    EXPECT_THAT(refusal([] { port::config_vars().number("VIADUCT_MTU"); }),
                HasSubstr("0 or a whole number"));
  }
  for (const std::uint64_t good : {0, 576, 9000}) {
    set("VIADUCT_MTU", std::to_string(good).c_str());
    EXPECT_EQ(port::config_vars().number("VIADUCT_MTU"), good);
  }
}

TEST_F(ConfigVars, AllThatIsWrongIsFoundWithoutReadingIt) {
  EXPECT_THAT(port::config_vars().problems(), IsEmpty());
  EXPECT_NO_THROW(port::config_vars().check());
  set("VIADUCT_FRAMES", "x");
  set("VIADUCT_FAULTS", "loss=300%");
  EXPECT_THAT(port::config_vars().problems(),
              ElementsAre(HasSubstr("VIADUCT_FRAMES=x is not a whole number"),
                          HasSubstr("VIADUCT_FAULTS=loss=300%: ")));
  EXPECT_THAT(refusal([] { port::config_vars().check(); }), HasSubstr("VIADUCT_FRAMES=x"));
}

TEST_F(ConfigVars, AnyWrongOneIsFoundBeforeAPortIsOpened) {
  for (const auto& [name, bad] :
       {std::pair{"VIADUCT_MEMORY", "x"}, {"VIADUCT_FRAMES", "x"}, {"VIADUCT_CHECKSUM", "maybe"}}) {
    set(name, bad);
    EXPECT_THAT(refusal([] { endpoint::check_config(); }),
                HasSubstr(std::string(name) + "=" + bad + " is not "));
    set(name, "");
  }
}

TEST_F(ConfigVars, SwitchesAreOnOrOff) {
  for (const auto* on : {"on", "1", "yes"}) {
    set("VIADUCT_CHECKSUM", on);
    EXPECT_TRUE(config_vars().on("VIADUCT_CHECKSUM"));
  }
  for (const auto* off : {"off", "0", "no"}) {
    set("VIADUCT_CHECKSUM", off);
    EXPECT_FALSE(config_vars().on("VIADUCT_CHECKSUM"));
  }
  set("VIADUCT_CHECKSUM", "maybe");
  EXPECT_THAT(refusal([] { config_vars().on("VIADUCT_CHECKSUM"); }),
              AllOf(HasSubstr("VIADUCT_CHECKSUM=maybe"), HasSubstr("on|off")));
}

TEST_F(ConfigVars, MisspeltOnesAreFound) {
  EXPECT_THAT(base::unknown_config_vars(kTables, "VIADUCT_VIPL_"), IsEmpty());
  set("VIADUCT_JOBS", "7");
  set("VIADUCT_FAULT", "loss=1%");
  set("VIADUCT_JOB", "7");
  set("VIADUCT_VM_HOST", "1");
  set("VIADUCT_VIPL_PORT", "18651");
  EXPECT_THAT(base::unknown_config_vars(kTables, "VIADUCT_VIPL_"),
              ElementsAre("VIADUCT_FAULT", "VIADUCT_JOBS"));
  EXPECT_THAT(base::unknown_config_vars(kTables),
              ElementsAre("VIADUCT_FAULT", "VIADUCT_JOBS", "VIADUCT_VIPL_PORT"));
}

TEST_F(ConfigVars, PortsAreCountedByLocalRank) {
  EXPECT_THAT(refusal([] { port::port_for_rank(0); }), HasSubstr("set VIADUCT_PORTS"));
  set("VIADUCT_PORTS", " 0000:3b:02.0 ;net_memif0,role=server,socket=/x y,id={n} ; ;p{n}q{n};");
  EXPECT_THAT(port::port_list(),
              ElementsAre("0000:3b:02.0", "net_memif0,role=server,socket=/x y,id={n}", "p{n}q{n}"));
  EXPECT_EQ(port::port_for_rank(0), "0000:3b:02.0");
  EXPECT_EQ(port::port_for_rank(1), "net_memif0,role=server,socket=/x y,id=1");
  EXPECT_EQ(port::port_for_rank(2), "p2q2");
  EXPECT_THAT(refusal([] { port::port_for_rank(3); }),
              AllOf(HasSubstr("3 ports"), HasSubstr("rank 3")));
}

TEST_F(ConfigVars, OnePatternServesEveryRank) {
  set("VIADUCT_PORTS", "net_af_packet{n},iface=p{n}");
  EXPECT_EQ(port::port_for_rank(0), "net_af_packet0,iface=p0");
  EXPECT_EQ(port::port_for_rank(12), "net_af_packet12,iface=p12");
  set("VIADUCT_PORTS", "net_af_packet0,iface=p0");
  EXPECT_EQ(port::port_for_rank(0), "net_af_packet0,iface=p0");
  EXPECT_NE(refusal([] { port::port_for_rank(1); }), "");
}

}  // namespace
}  // namespace viaduct::link
