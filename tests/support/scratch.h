// A folder that only this test uses, with a cache file in it.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cache/cache.h"

namespace hone::test {

class Scratch {
  public:
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "hone-tuner-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] cache::Cache cache() const { return cache::Cache::open(path("cache.db")); }

  private:
    std::filesystem::path folder_;
};

}  // namespace hone::test
