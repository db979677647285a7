// Everything of Hone's C++ API:
//   hone::Runtime runtime;
//   const hone::RmsNormKernel norm = runtime.prepare(hone::RmsNorm{.hidden = 4096});
//   const hone::Status status = norm.run(stream, {.x = x, .weight = w, .out = y}, rows);
#pragma once

#include "hone/attention.h"         // IWYU pragma: export
#include "hone/error.h"             // IWYU pragma: export
#include "hone/linear.h"            // IWYU pragma: export
#include "hone/norm.h"              // IWYU pragma: export
#include "hone/prepared_kernel.h"   // IWYU pragma: export
#include "hone/quantize.h"          // IWYU pragma: export
#include "hone/quantize_weights.h"  // IWYU pragma: export
#include "hone/quantized_linear.h"  // IWYU pragma: export
#include "hone/report.h"            // IWYU pragma: export
#include "hone/rope_table.h"        // IWYU pragma: export
#include "hone/runtime.h"           // IWYU pragma: export

namespace hone {

/// "0.1.0"
[[nodiscard]] std::string_view version();

}  // namespace hone
