// An empty cache in a folder that goes with it, for programs that replay recorded sweeps.
#pragma once

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <string>
#include <system_error>

#include "cache/cache.h"

namespace hone::bench {

class EmptyCache {
  public:
    EmptyCache()
        : folder_((std::filesystem::temp_directory_path() / "hone-bench-XXXXXX").string()),
          cache_(cache::Cache::open(std::filesystem::path(mkdtemp(folder_.data())) / "cache.db")) {}
    EmptyCache(const EmptyCache&) = delete;
    EmptyCache& operator=(const EmptyCache&) = delete;
    ~EmptyCache() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    [[nodiscard]] cache::Cache& get() { return cache_; }

  private:
    std::string folder_;
    cache::Cache cache_;
};

}  // namespace hone::bench
