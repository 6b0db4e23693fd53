// SPDX-License-Identifier: BSD-3-Clause
#include "tools/result_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "tools/commands.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class ResultFolderTest : public ::testing::Test {
 protected:
  ResultFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "weft-folder-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    old_ = fs::current_path();
    fs::current_path(root_);
  }
  ~ResultFolderTest() override {
    fs::current_path(old_);
    fs::remove_all(root_);
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void put(const fs::path& path) { std::ofstream(path) << "mine"; }

  fs::path root_, old_;
};

TEST_F(ResultFolderTest, WithoutANameTakesTheNextFreeNumber) {
  const ResultFolder first("", "incast", false), second("", "incast", false);
  EXPECT_EQ(first.path(), "weft-results/incast-1");
  EXPECT_EQ(second.path(), "weft-results/incast-2");
}

TEST_F(ResultFolderTest, CreatesParentsAndTakesAnEmptyFolder) {
  { const ResultFolder nested("a/b/c/", "x", false); }
  EXPECT_TRUE(fs::is_directory("a/b/c"));
  EXPECT_TRUE(fs::is_empty("a/b/c")) << "the lock goes when the run ends";
  EXPECT_NO_THROW(ResultFolder("a/b/c", "x", false));
}

TEST_F(ResultFolderTest, NeverTakesAFolderThatHoldsSomething) {
  fs::create_directory("used");
  put("used/thesis.tex");
  EXPECT_THROW(ResultFolder("used", "x", false), UsageError);
  EXPECT_THROW(ResultFolder("used", "x", true), UsageError) << "--force is for an earlier run's folder only";
  EXPECT_THROW(ResultFolder("used/thesis.tex", "x", true), UsageError) << "a file is no folder";
  EXPECT_EQ(read("used/thesis.tex"), "mine");
  EXPECT_FALSE(fs::exists("used/.reserve"));
}

TEST_F(ResultFolderTest, ForceReplacesAnEarlierRunAndNothingElse) {
  fs::create_directory("out");
  put("out/config.yaml"), put("out/capture.pcapng"), put("out/notes.txt");
  EXPECT_THROW(ResultFolder("out", "x", false), UsageError);
  const ResultFolder again("out", "x", true);
  EXPECT_FALSE(fs::exists("out/capture.pcapng")) << "an old capture would pass for one of the new run";
  EXPECT_EQ(read("out/notes.txt"), "mine");
}

TEST_F(ResultFolderTest, TwoRunsNeverShareAFolder) {
  const ResultFolder first("out", "x", false);
  EXPECT_THROW(ResultFolder("out", "x", false), UsageError);
  EXPECT_THROW(ResultFolder("out", "x", true), UsageError);
}

TEST_F(ResultFolderTest, AKilledRunsReserveIsNoObstacle) {
  fs::create_directory("out");
  put("out/.reserve");
  EXPECT_NO_THROW(ResultFolder("out", "x", false));
}

TEST_F(ResultFolderTest, WritesWholeFiles) {
  ResultFolder folder("out", "x", false);
  folder.reserve(1 << 16);
  EXPECT_EQ(fs::file_size("out/.reserve"), 1u << 16);
  folder.release();
  EXPECT_EQ(fs::file_size("out/.reserve"), 0u);
  folder.write("results.json", "{}\n");
  EXPECT_EQ(read("out/results.json"), "{}\n");
  EXPECT_FALSE(fs::exists("out/.results.json.tmp"));
}

TEST_F(ResultFolderTest, SaysWhereAndWhyItCannotWrite) {
  ResultFolder folder("out", "x", false);
  fs::create_directory("out/results.json");  // a folder cannot be replaced by a file, not even by root
  try {
    folder.write("results.json", "{}\n");
    FAIL() << "no error";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("out/results.json"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(fs::exists("out/.results.json.tmp"));
}

TEST_F(ResultFolderTest, SaysThatThereIsNoRoom) {
  ResultFolder folder("out", "x", false);
  // No file system gives 2^62 bytes.
  EXPECT_THROW(folder.reserve(std::uint64_t{1} << 62), std::runtime_error);
  EXPECT_EQ(fs::file_size("out/.reserve"), 0u);
}

TEST_F(ResultFolderTest, ARunThatNeverStartedLeavesNothing) {
  {
    ResultFolder folder("a/b", "x", false);
    folder.write("config.yaml", "x");
    folder.discard();
  }
  EXPECT_FALSE(fs::exists("a"));
  fs::create_directory("mine");
  {
    ResultFolder folder("mine", "x", false);
    folder.write("config.yaml", "x");
    folder.discard();
  }
  EXPECT_TRUE(fs::is_empty("mine")) << "the user's own folder stays";
  {
    ResultFolder folder("", "x", false);
    folder.discard();
  }
  EXPECT_FALSE(fs::exists("weft-results"));
}

TEST_F(ResultFolderTest, WhatWasCapturedIsKept) {
  ResultFolder folder("out", "x", false);
  folder.write("config.yaml", "x");
  put("out/capture.pcapng");
  folder.discard();
  EXPECT_TRUE(fs::exists("out/config.yaml"));
}

}  // namespace
}  // namespace weft
