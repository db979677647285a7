// A trial and the layer of the cache that it comes from.
#pragma once

#include <string>

#include "cache/records.h"

namespace hone::tuner {

struct StoredTrial {
    cache::Trial trial;
    std::string layer;  ///< "user", "site", "packaged"
};

}  // namespace hone::tuner
