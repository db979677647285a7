// What the cache's tests share: places, made-up records, and child processes.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "cache/layers.h"
#include "cache/packed_bundle.h"
#include "tests/support/scale.h"

namespace hone::cache::test {

/// A private directory that is gone at the end, whatever was done to its permissions.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory();
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

using hone::test::scaled;

/// Different for each `i`; nothing about it need make sense to a family.
[[nodiscard]] Trial sample_trial(int i);
/// A winner of a real family of this build, with this build's template hash; another key for each `i`.
[[nodiscard]] Trial sample_winner(int i);
/// All that is known of the static problems of the first `count` sample_winner()s.
[[nodiscard]] std::vector<LoadedWinner> winners_of_samples(const Winners& winners, int count);

/// A bundle as it ships with a build.
class Packaged {
  public:
    Packaged(std::string name, std::string_view bundle);
    Packaged(const Packaged&) = delete;
    Packaged& operator=(const Packaged&) = delete;
    [[nodiscard]] const PackagedBundle& view() const { return view_; }
    [[nodiscard]] std::span<const PackagedBundle> layer() const { return {&view_, 1}; }

  private:
    std::string name_;
    PackedBundle packed_;
    std::vector<PackagedRows> rows_;
    PackagedBundle view_;
};

[[nodiscard]] ImageKey sample_image_key(int i);
[[nodiscard]] Image sample_image(int i, std::size_t bytes = 3000);
[[nodiscard]] GpuKey h100();
[[nodiscard]] Toolchain toolchain();

/// Throws std::runtime_error(what) unless it holds: for child processes, where doctest's checks do not reach.
void require(bool holds, const std::string& what);

/// Runs it in a child process; returns what went wrong there, or "".
[[nodiscard]] std::string in_child(const std::function<void()>& work);
/// The same without root's rights, which would pass by all permissions.
[[nodiscard]] std::string as_ordinary_user(const std::function<void()>& work);

/// "" or the error's kind, as the enumerator is spelt.
[[nodiscard]] std::string kind_of_error(const std::function<void()>& work);
[[nodiscard]] std::string open_error(const std::filesystem::path& file, OpenMode mode = OpenMode::read_write);

[[nodiscard]] std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, std::string_view content);
/// Runs SQL on a file past the cache's own checks.
void run_sql(const std::filesystem::path& file, const std::string& sql);
/// Name, mode, size, modification time and content of everything below: equal when nothing was touched.
[[nodiscard]] std::string listing(const std::filesystem::path& directory);

}  // namespace hone::cache::test
