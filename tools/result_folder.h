// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The folder that a run leaves behind: config.yaml, results.json, flows.csv, series.csv, links.csv, latency.csv and
// capture.pcapng.
// Nothing that was there before is ever overwritten unless the user says --force, and then only files of these names.
// Captures can fill the disk, so room for the reports is set aside before the run and given back when they are written.
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// What a subcommand leaves in its folder.
struct FolderKind {
  std::string_view what;                    // "run"
  std::string_view suffix;                  // of weft-results/<name><suffix>-<n>
  std::span<const std::string_view> files;  // replaced by --force
  std::span<const std::string_view> marks;  // one of these tells an earlier one's folder
};

/// Writes a file whole or not at all: a temporary file beside it, synced, then renamed. Throws std::runtime_error.
void write_whole(const std::filesystem::path& target, std::string_view content);

class ResultFolder {
 public:
  static constexpr std::array<std::string_view, 7> file_names{
      "config.yaml", "results.json", "flows.csv", "series.csv", "links.csv", "latency.csv", "capture.pcapng"};
  static constexpr std::array<std::string_view, 2> run_marks{"config.yaml", "results.json"};
  static constexpr FolderKind run{"run", "", file_names, run_marks};

  /// `out`: the folder to use, created with its parents, and empty if it exists. Empty: a new
  /// weft-results/<name>-<n>, n being the first that is free. `force`: an earlier run's files in `out` are replaced.
  /// Throws UsageError where the folder holds something already or another run is using it, std::runtime_error where
  /// the disk refuses.
  ResultFolder(const std::string& out, const std::string& name, bool force, const FolderKind& kind = run);
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }

  /// Sets `bytes` of the disk aside. Throws std::runtime_error if they are not there.
  void reserve(std::uint64_t bytes);
  /// Gives them back to the disk; the folder stays this run's own.
  void release();
  /// As write_whole().
  void write(std::string_view name, std::string_view content) const;
  /// A run that never started leaves no folder: config.yaml goes, and what the constructor created if it is then empty.
  void discard();

 private:
  void lock();
  void unlock();

  std::filesystem::path path_;
  std::filesystem::path created_;  // topmost folder that the constructor made; empty: none
  int reserve_fd_ = -1;            // locked, which is what tells a folder in use from one left by a killed run
};

}  // namespace weft
