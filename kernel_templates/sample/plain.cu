// Sample, variant plain: one block a row, for every GPU and any vocabulary.
//
// Data's way: global -> registers, at every look anew: once for the largest logit, once for each histogram,
// for the masses and for the token. The rest is what clusters do, by a block alone (sampler.cuh).
#include "sample/sampler.cuh"

namespace hone::sample::plain {

inline constexpr int threads = static_cast<int>(Tuned::threads);

using Home = GlobalHome<Layout<Alone, threads, static_cast<int>(Tuned::vector)>>;
using RowSampler = Sampler<Alone, Home, threads>;

__device__ inline void run(const Tensors& tensors) {
    __shared__ RowSampler::ScratchType scratch;
    if constexpr (Tuned::programmatic != 0) release_successor();
    scratch.template clear<threads>();
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    Home home;
    RowSampler(tensors, home, scratch).run();
}

}  // namespace hone::sample::plain

extern "C" __global__ void __launch_bounds__(hone::sample::plain::threads, 1)
    sample_plain(HONE_PARAMETERS(sample_plain)) {
    const hone::sample::Tensors tensors{HONE_ARGUMENTS(sample_plain)};
    hone::sample::plain::run(tensors);
}
