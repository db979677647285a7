// LayerNorm by the variant streamed_row: norm/streamed_row.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
using Statistic = MeanAndVariance<Shape::bias != 0>;
}

#include "norm/streamed_row.cuh"
