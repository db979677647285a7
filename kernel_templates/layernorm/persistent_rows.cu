// LayerNorm by the variant persistent_rows: norm/persistent_rows.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
using Statistic = MeanAndVariance<Shape::bias != 0>;
}

#include "norm/persistent_rows.cuh"
