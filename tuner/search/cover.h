// The few kernels that serve all sizes of a static problem with the least loss: a k-median problem over
// measured times. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace hone::tuner {

/// Microseconds a call, us[size][kernel]: as many kernels for each size, infinity where a kernel may not run,
/// has failed, or was not measured. All of one size are comparable, and one is finite at least.
using TimesBySize = std::vector<std::vector<double>>;

struct Cover {
    std::vector<std::size_t> kernels;         ///< chosen ones, in the order in which they were added
    std::vector<std::size_t> kernel_of_size;  ///< the fastest of them at each size
    double mean_loss =
        0;  ///< time over that of the size's fastest kernel, geometric mean over the sizes, less 1
    double worst_loss = 0;  ///< the same of the size that loses most
};

/// At most `limit` kernels, fewer where more gain nothing; nothing where so few were found not to serve every
/// size. Adds the kernel that gains most, then exchanges one for another as long as that gains (Teitz and
/// Bart, Operations Research 16, 1968); a larger `limit` starts from the kernels of a smaller one, so that
/// its mean loss is never larger. The first of equally good ones is taken.
[[nodiscard]] std::optional<Cover> cover(const TimesBySize& us, std::size_t limit);

}  // namespace hone::tuner
