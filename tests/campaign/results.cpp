#include "tests/campaign/results.h"

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/scale.h"

namespace hone::campaign {

void report(int promise, const std::string& test, const std::string& what, std::int64_t count,
            std::int64_t total) {
    const char* file = std::getenv("HONE_CAMPAIGN_RESULTS");
    if (file == nullptr) return;
    nlohmann::json line{{"promise", promise}, {"test", test}, {"what", what}, {"count", count}};
    if (total > 0) line["total"] = total;
    std::ofstream(file, std::ios::app) << line.dump() << '\n';
}

bool is_campaign() { return std::getenv("HONE_CAMPAIGN_RESULTS") != nullptr; }

int scaled(int sample, int full) { return is_campaign() ? full : test::scaled(sample); }

}  // namespace hone::campaign
