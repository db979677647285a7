// Sample, reference: a block a row. One thread finds the largest logit and walks along the masses to the
// token; thresholds are made bit by bit, each kept while enough tokens or enough mass stays at or above it.
// Weights are those of numbers.cuh, since not a bit may differ. The outputs are float32.
#include "sample/tensors.cuh"

namespace hone::sample::reference {

inline constexpr int threads = 1024;

class Row {
  public:
    __device__ Row(const Tensors& tensors, int64 row)
        : tensors_(tensors), row_(row), logits_(tensors.logits + row * tensors.logits_stride) {}

    __device__ void run() {
        const Request request = tensors_.request(row_);
        find_largest();
        if (fabsf(largest_) == infinity) {
            if (threadIdx.x == 0) tensors_.write_infinite(row_, token_, largest_);
            return;
        }
        scaling_ = Capped::scaling(largest_, 1.0f);
        const uint64 raw = kept_mass(0);
        if (request.is_greedy) {
            if (threadIdx.x == 0) tensors_.write(row_, token_, largest_, raw);
            return;
        }
        scaling_ = Capped::scaling(largest_, request.temperature);
        const uint32 least = threshold(request);
        const uint64 drawn = high_product(request.random, kept_mass(least));
        if (threadIdx.x == 0) tensors_.write(row_, walk(least, drawn), largest_, raw);
    }

  private:
    __device__ void find_largest() {
        __shared__ float largest;
        __shared__ int token;
        if (threadIdx.x == 0) {
            largest = -infinity;
            token = 0;
            for (int i = 0; i < vocabulary; ++i) {
                const float logit = to_float(logits_[i]);
                if (!(logit > largest)) continue;
                largest = logit;
                token = i;
            }
        }
        __syncthreads();
        largest_ = largest;
        token_ = token;
    }

    __device__ uint32 mass(int token) const { return Capped::mass(to_float(logits_[token]), scaling_); }

    /// Over the vocabulary; by all threads.
    template <class Term>
    __device__ uint64 sum(Term term) const {
        __shared__ uint64 total;
        __syncthreads();
        if (threadIdx.x == 0) total = 0;
        __syncthreads();
        uint64 mine = 0;
        for (int i = threadIdx.x; i < vocabulary; i += threads) mine += term(mass(i));
        atomicAdd(&total, mine);
        __syncthreads();
        return total;
    }
    __device__ uint64 kept_count(uint32 least) const {
        return sum([&](uint32 mass) -> uint64 { return mass != 0 && mass >= least ? 1 : 0; });
    }
    __device__ uint64 kept_mass(uint32 least) const {
        return sum([&](uint32 mass) -> uint64 { return mass >= least ? mass : 0; });
    }

    /// The largest number for which `is_enough` holds, which holds for 0.
    template <class Enough>
    __device__ static uint32 largest_with(Enough is_enough) {
        uint32 found = 0;
        for (uint32 bit = 1u << 31; bit != 0; bit /= 2) {
            if (is_enough(found | bit)) found |= bit;
        }
        return found;
    }
    __device__ uint32 threshold(const Request& request) const {
        uint32 least = 0;
        if (request.top_k != 0 && request.top_k < kept_count(0))
            least = largest_with([&](uint32 trial) { return kept_count(trial) >= request.top_k; });
        if (request.top_p < 1.0f) {
            const uint64 wanted = part_of(kept_mass(least), request.top_p);
            least = max(least, largest_with([&](uint32 trial) { return kept_mass(trial) >= wanted; }));
        }
        return max(least, mass_from(request.min_p));
    }

    __device__ int walk(uint32 least, uint64 drawn) const {
        for (int i = 0; i < vocabulary; ++i) {
            const uint64 own = mass(i) >= least ? mass(i) : 0;
            if (drawn < own) return i;
            drawn -= own;
        }
        return 0;
    }

    const Tensors& tensors_;
    int64 row_;
    const Element* logits_;
    Scaling scaling_{};
    float largest_ = 0;
    int token_ = 0;
};

__device__ inline void run(const Tensors& tensors) { Row(tensors, blockIdx.x).run(); }

}  // namespace hone::sample::reference

extern "C" __global__ void __launch_bounds__(hone::sample::reference::threads)
    sample_reference(HONE_PARAMETERS(sample_reference)) {
    const hone::sample::Tensors tensors{HONE_ARGUMENTS(sample_reference)};
    hone::sample::reference::run(tensors);
}
