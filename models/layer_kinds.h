// Which layers of a model have a window, chunks, rotation or experts: from the rules of an architecture, or
// lists in the file, to kinds of layers with their counts.
#pragma once

#include <cstdint>
#include <vector>

#include "models/architecture.h"

namespace hone::models {

/// Keys that a query sees in a window of that size. 0: all, also where no text is longer than the window.
[[nodiscard]] std::int64_t window_within(const Model& model, std::int64_t size);

/// Also sets what `model` has in all layers, sliding_window, and group_of_layer. Empty where all layers are
/// alike, and as those of a model without groups. Throws ModelError for lists that do not fit the number of
/// layers, or that name layers which the architecture does not have.
[[nodiscard]] std::vector<LayerGroup> read_layer_groups(const Architecture& architecture, const Keys& keys,
                                                        Model& model);

}  // namespace hone::models
