// SPDX-License-Identifier: BSD-3-Clause
#include "tools/fabric_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/commands.h"

namespace weft {
namespace {

class FabricChoiceTest : public ::testing::Test {
 protected:
  FabricChoiceTest()
      : path_((std::filesystem::temp_directory_path() / ("weft-choice-" + std::to_string(::getpid()) + ".yaml"))
                  .string()) {
    write("topology: {leaves: 2, spines: 2, hosts_per_leaf: 2}\n");
  }
  ~FabricChoiceTest() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  std::string path_;
};

TEST_F(FabricChoiceTest, TheNameSaysFabricAndLoadBalancing) {
  const auto choices = choose_fabrics({"ethernet/spray", "voq", "ethernet"}, path_, {});
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].folder, "ethernet-spray");
  const Config spray = load_config(path_, choices[0].overrides);
  EXPECT_EQ(spray.fabric, FabricKind::ethernet);
  EXPECT_EQ(spray.ethernet.load_balance, ethernet::LoadBalance::spray);
  EXPECT_EQ(load_config(path_, choices[1].overrides).fabric, FabricKind::voq);
  EXPECT_EQ(choices[2].overrides, std::vector<std::string>{"fabric=ethernet"}) << "balances as the config says";
}

TEST_F(FabricChoiceTest, RefusesWhatIsNoFabric) {
  for (const char* name : {"", "vow", "voq/", "voq/spray", "ethernet/", "ethernet/magic", "ethernet/spray/random"})
    EXPECT_THROW(choose_fabrics({name}, path_, {}), UsageError) << name;
  EXPECT_THROW(choose_fabrics({"voq", "voq"}, path_, {}), UsageError);
  EXPECT_THROW(choose_fabrics({}, path_, {}), UsageError);
}

TEST_F(FabricChoiceTest, RefusesAConfigThatDoesNotHoldForOneOfThem) {
  write("voq: {ecn: {kmin: 2MB, kmax: 1MB}}\nclasses: {ecn: [3]}\n");
  EXPECT_THROW(choose_fabrics({"ethernet", "voq"}, path_, {}), ConfigError);
  EXPECT_THROW(choose_fabrics({"voq"}, path_, {"nonsense=1"}), ConfigError);
}

TEST_F(FabricChoiceTest, ClassesToMarkAreNoMistakeOfVoqWithoutThresholds) {
  write("fabric: ethernet\nclasses: {ecn: [3]}\n");
  const auto choices = choose_fabrics({"voq", "ethernet"}, path_, {});
  EXPECT_EQ(load_config(path_, choices[0].overrides).classes.ecn, ClassesConfig{}.ecn);
  EXPECT_EQ(choices[0].notes.size(), 1u);
  EXPECT_TRUE(load_config(path_, choices[1].overrides).classes.ecn[3]);
  write("classes: {ecn: [3]}\nvoq: {ecn: {kmin: 1MB, kmax: 2MB, pmax: 1}}\n");
  EXPECT_TRUE(choose_fabrics({"voq"}, path_, {})[0].notes.empty());
}

}  // namespace
}  // namespace weft
