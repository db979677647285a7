// Sample, variant cluster_row: a cluster of blocks shares a row, so that even one row brings many
// multiprocessors to work and no more than one pass over memory is needed.
//
// Data's way: global -> registers, or by way of registers to shared memory, of all blocks of the cluster,
// once; largest logit, histograms and masses between them through distributed shared memory (sampler.cuh);
// token -> global.
#include "sample/sampler.cuh"

namespace hone::sample::cluster_row {

inline constexpr int threads = static_cast<int>(Tuned::threads);
inline constexpr LoadHint load_hint = static_cast<LoadHint>(Tuned::load_hint);
inline constexpr bool in_shared = Tuned::home != 0;

using Team = Cluster<static_cast<int>(Tuned::cluster)>;
using RowLayout = Layout<Team, threads, static_cast<int>(Tuned::vector)>;
using Home =
    Conditional<in_shared, SharedHome<RowLayout, load_hint>, RegisterHome<RowLayout, load_hint>>::type;
using RowSampler = Sampler<Team, Home, threads>;

template <class Home>
__device__ inline Home home_at(Element* elements) {
    Home home{};
    if constexpr (in_shared) home.elements = elements;
    return home;
}

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ uint4 memory[];
    auto& scratch = *reinterpret_cast<RowSampler::ScratchType*>(memory);
    Team::start();
    if constexpr (Tuned::programmatic != 0) release_successor();
    scratch.template clear<threads>();
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    Home home = home_at<Home>(reinterpret_cast<Element*>(&scratch + 1));
    RowSampler(tensors, home, scratch).run();
}

}  // namespace hone::sample::cluster_row

extern "C" __global__ void __launch_bounds__(hone::sample::cluster_row::threads, 1)
    sample_cluster_row(HONE_PARAMETERS(sample_cluster_row)) {
    const hone::sample::Tensors tensors{HONE_ARGUMENTS(sample_cluster_row)};
    hone::sample::cluster_row::run(tensors);
}
