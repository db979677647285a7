// RMSNorm by the variant group_rows: norm/group_rows.cuh says how.
#include "norm/row.cuh"

namespace hone::norm {
using Statistic = RootMeanSquare;
}

#include "norm/group_rows.cuh"
