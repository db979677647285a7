// LayerNorm by the variant cluster_row: norm/cluster_row.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
using Statistic = MeanAndVariance<Shape::bias != 0>;
}

#include "norm/cluster_row.cuh"
