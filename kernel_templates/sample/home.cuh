// Where a row stays while it is looked at several times: registers, as masses; shared memory or global
// memory, as elements, whose masses are computed anew at each look. A lane only ever touches its own packets,
// so no barrier guards a home. Tokens past the vocabulary's end count as minus infinity.
//
// A home offers
//   steps, vector, unroll           packets of a lane, elements of a packet, packets that are unrolled
//   float load(tensors, row)        brings the row home; the lane's largest logit, minus infinity where it
//   has none int index_of(value)             the lowest of the lane's tokens with this logit, its largest
//   logits(step, values)            a packet as numbers, until weigh()
//   weigh(scaling)                  from here on there are masses
//   masses(step, values)            of a step known when compiled; masses_at: of any
//   bool masses_from(least, step, values)   the same; false where all of them are below `least`, and may be
//   anything visit_bin(bin, visit)           calls visit(bits) for the masses of a bin int token(step) the
//   first of a packet
#pragma once

#include "device/math.cuh"
#include "sample/tensors.cuh"
#include "sample/warp.cuh"

namespace hone::sample {

/// Which packets a lane owns, and how they come from global memory.
template <class Team, int threads, int vector_>
struct Layout {
    static constexpr int vector = vector_;
    static constexpr Geometry geometry{vocabulary, Team::blocks, threads, vector};
    static constexpr int steps = geometry.steps();
    static_assert(vocabulary % vector == 0, "packets must not reach past the end of a row");
    using Words = Packet<Element, vector>;

    __device__ static int place(int step) {
        return warp_index() * geometry.warp_tokens() + (step * 32 + lane_index()) * vector;
    }
    __device__ static int token(int step) { return Team::rank() * geometry.block_tokens() + place(step); }

    /// Under no branch, which would wait for each load in turn.
    template <LoadHint hint>
    __device__ static Words fetch(const Element* row, int step) {
        const int first = token(step);
        const bool inside = first < vocabulary;
        Words words = load_packet<Element, vector, hint>(row + (inside ? first : 0));
#pragma unroll
        for (int i = 0; i < vector; ++i) {
            if (!inside) words.elements[i] = from_float<Element>(-infinity);
        }
        return words;
    }
};

/// The largest element of a packet; NaN is none.
template <int vector>
__device__ inline float largest_of(const float (&values)[vector]) {
    float largest = -infinity;
#pragma unroll
    for (int i = 0; i < vector; ++i) largest = fmaxf(largest, values[i]);
    return largest;
}

template <class Layout, LoadHint hint>
struct RegisterHome {
    static constexpr int vector = Layout::vector;
    static constexpr int steps = Layout::steps;
    static constexpr int unroll = steps;

    __device__ float load(const Tensors& tensors, int64 row) {
        const Element* from = tensors.logits + row * tensors.logits_stride;
        typename Layout::Words words[steps];
#pragma unroll
        for (int step = 0; step < steps; ++step) words[step] = Layout::template fetch<hint>(from, step);
        float largest = -infinity;
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            unpack(words[step], values_[step]);
            largest = fmaxf(largest, largest_of(values_[step]));
        }
        return largest;
    }
    __device__ int index_of(float value) const {
        int found = vocabulary;
#pragma unroll
        for (int step = steps - 1; step >= 0; --step) {
#pragma unroll
            for (int i = vector - 1; i >= 0; --i) {
                if (values_[step][i] == value) found = token(step) + i;
            }
        }
        return found;
    }
    __device__ void logits(int step, float (&values)[vector]) const {
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = values_[step][i];
    }
    __device__ void weigh(const Scaling& scaling) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (int i = 0; i < vector; ++i)
                values_[step][i] = __uint_as_float(mass_of(values_[step][i], scaling));
        }
    }
    __device__ void masses(int step, uint32 (&values)[vector]) const {
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = __float_as_uint(values_[step][i]);
    }
    __device__ void masses_at(int step, uint32 (&values)[vector]) const {
#pragma unroll
        for (int s = 0; s < steps; ++s) {
#pragma unroll
            for (int i = 0; i < vector; ++i) {
                const uint32 mass = __float_as_uint(values_[s][i]);
                values[i] = s == 0 || s == step ? mass : values[i];
            }
        }
    }
    __device__ bool masses_from(uint32, int step, uint32 (&values)[vector]) const {
        masses(step, values);
        return true;
    }
    template <class Visit>
    __device__ void visit_bin(uint32 bin, Visit visit) const {
        const uint32 least = Bin::mass(bin, 0);
        const uint32 most = Bin::mass(bin, bins - 1);
#pragma unroll
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (int i = 0; i < vector; ++i) {
                const uint32 mass = __float_as_uint(values_[step][i]);
                if (mass >= least && mass <= most) visit(Bin::bits(mass));
            }
        }
    }
    __device__ static int token(int step) { return Layout::token(step); }

  private:
    float values_[steps][vector];  ///< logits; from weigh() on the bits of masses
};

/// What homes of elements have in common: `Place` has words(step), a packet.
template <class Layout, class Place>
struct ElementHome : Place {
    static constexpr int vector = Layout::vector;
    static constexpr int steps = Layout::steps;
    static constexpr int unroll = 2;

    __device__ int index_of(float value) const {
        int found = vocabulary;
        float values[vector];
        logits(best_, values);
#pragma unroll
        for (int i = vector - 1; i >= 0; --i) {
            if (values[i] == value) found = token(best_) + i;
        }
        return found;
    }
    __device__ void logits(int step, float (&values)[vector]) const { unpack(Place::words(step), values); }
    __device__ void weigh(const Scaling& scaling) { scaling_ = scaling; }
    __device__ void masses(int step, uint32 (&values)[vector]) const {
        float found[vector];
        distances(step, found);
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = mass_of_distance(found[i], scaling_);
    }
    __device__ void masses_at(int step, uint32 (&values)[vector]) const { masses(step, values); }
    __device__ bool masses_from(uint32 least, int step, uint32 (&values)[vector]) const {
        float found[vector];
        distances(step, found);
        if (largest_of(found) < edge(least, -margin)) return false;
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = mass_of_distance(found[i], scaling_);
        return true;
    }
    template <class Visit>
    __device__ void visit_bin(uint32 bin, Visit visit) const {
        const float low = edge(Bin::mass(bin, 0), -margin);
        const float high = edge(Bin::mass(bin, bins - 1) + 1, margin);
#pragma unroll(unroll)
        for (int step = 0; step < steps; ++step) {
            float found[vector];
            distances(step, found);
#pragma unroll
            for (int i = 0; i < vector; ++i) {
                if (found[i] < low || found[i] > high) continue;
                const uint32 bits = Bin::bits(mass_of_distance(found[i], scaling_));
                if (Bin::of(bits) == bin) visit(bits);
            }
        }
    }
    __device__ static int token(int step) { return Layout::token(step); }

  protected:
    /// Takes in a packet of the lane, in order.
    __device__ void see(int step, const typename Layout::Words& words, float& largest) {
        float values[vector];
        unpack(words, values);
        const float found = largest_of(values);
        if (found > largest) best_ = step;
        largest = fmaxf(largest, found);
    }

  private:
    /// In units of the exponent, more than rounding takes a mass from it.
    static constexpr float margin = 0x1p-8f;

    /// The distance at which a mass lies, and `more` beyond.
    __device__ float edge(uint32 mass, float more) const {
        return (fast_log2(static_cast<float>(mass)) - mass_bits + more) / scaling_.factor;
    }
    __device__ void distances(int step, float (&values)[vector]) const {
        logits(step, values);
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = distance_of(values[i], scaling_);
    }

    int best_ = 0;
    Scaling scaling_;
};

template <class Layout>
struct SharedPlace {
    __device__ typename Layout::Words words(int step) const {
        return *reinterpret_cast<const typename Layout::Words*>(elements + Layout::place(step));
    }
    Element* elements;
};
template <class Layout, LoadHint hint>
struct SharedHome : ElementHome<Layout, SharedPlace<Layout>> {
    static constexpr int ahead = 8;  ///< loads under way in a lane

    __device__ float load(const Tensors& tensors, int64 row) {
        const Element* from = tensors.logits + row * tensors.logits_stride;
        float largest = -infinity;
        for (int first = 0; first < Layout::steps; first += ahead) {
            typename Layout::Words words[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                if (first + i < Layout::steps) words[i] = Layout::template fetch<hint>(from, first + i);
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                if (first + i >= Layout::steps) break;
                *reinterpret_cast<typename Layout::Words*>(this->elements + Layout::place(first + i)) =
                    words[i];
                this->see(first + i, words[i], largest);
            }
        }
        return largest;
    }
};

template <class Layout>
struct GlobalPlace {
    __device__ typename Layout::Words words(int step) const {
        return Layout::template fetch<LoadHint::normal>(from, step);
    }
    const Element* from;
};
template <class Layout>
struct GlobalHome : ElementHome<Layout, GlobalPlace<Layout>> {
    __device__ float load(const Tensors& tensors, int64 row) {
        this->from = tensors.logits + row * tensors.logits_stride;
        float largest = -infinity;
#pragma unroll 4
        for (int step = 0; step < Layout::steps; ++step) this->see(step, this->words(step), largest);
        return largest;
    }
};

}  // namespace hone::sample
