// How real a trial's numbers are: what was measured on a GPU holds against what was replayed or predicted.
#pragma once

#include "cache/records.h"

namespace hone::cache {

/// Smaller is more real: 0 for what was measured.
[[nodiscard]] constexpr int distance_from_reality(Provenance provenance) {
    switch (provenance) {
        case Provenance::measured: return 0;
        case Provenance::replayed: return 1;
        case Provenance::predicted: break;
    }
    return 2;
}

}  // namespace hone::cache
