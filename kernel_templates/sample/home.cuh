// Where a row stays while it is looked at several times: registers, as masses; shared memory or global
// memory, as elements, whose masses are computed anew at each look. A lane only touches its own packets
// until the token is drawn, so no barrier guards a home. Tokens past the vocabulary's end count as minus
// infinity.
//
// A home offers
//   steps, vector, unroll        packets of a lane, elements of a packet, packets that are unrolled
//   looks_are_cheap              a pass over all masses costs no more than one over a histogram
//   counts_values                it knows how many tokens have a value: visit_counted(visit)
//   float load(tensors, row, will_count)
//                                brings the row home; the lane's largest logit, minus infinity where it has
//                                none
//   int index_of(value)          the lowest of the lane's tokens with this logit, its largest
//   logits(step, values)         a packet as numbers, until weigh()
//   weigh(scaling)               from here on there are masses
//   masses(step, values)         of a step known when compiled; masses_at: of any
//   bool masses_from(least, step, values)
//                                the same; false where all of them are below `least`, and may be anything
//   visit_bin(bin, visit)        calls visit(bits, tokens) for the masses of a bin
//   int looks()                  packets of a lane to look at for the token: `steps`, or those of a part
//   int token(step)              the first of a packet
#pragma once

#include "device/math.cuh"
#include "device/shared_words.cuh"
#include "device/warp.cuh"
#include "sample/tensors.cuh"

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
    static constexpr bool looks_are_cheap = true;
    static constexpr bool counts_values = false;

    __device__ float load(const Tensors& tensors, int64 row, bool) {
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
                values_[step][i] = __uint_as_float(Capped::mass(values_[step][i], scaling));
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
                if (mass >= least && mass <= most) visit(Bin::bits(mass), 1u);
            }
        }
    }
    __device__ static constexpr int looks() { return steps; }
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
    static constexpr bool looks_are_cheap = false;
    static constexpr bool counts_values = false;

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
                if (Bin::of(bits) == bin) visit(bits, 1u);
            }
        }
    }
    __device__ static constexpr int looks() { return steps; }
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

    /// In units of the exponent, more than rounding takes a mass from it.
    static constexpr float margin = 0x1p-8f;

    /// The distance at which a mass lies, and `more` beyond.
    __device__ float edge(uint32 mass, float more) const {
        return (fast_log2(static_cast<float>(mass)) - mass_bits + more) / scaling_.factor;
    }
    __device__ const Scaling& scaling() const { return scaling_; }

  private:
    __device__ void distances(int step, float (&values)[vector]) const {
        logits(step, values);
#pragma unroll
        for (int i = 0; i < vector; ++i) values[i] = Capped::distance(values[i], scaling_);
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

    __device__ float load(const Tensors& tensors, int64 row, bool) {
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

/// The slots of two numbers, without their signs.
__device__ inline uint32 places(uint32 pair) {
    constexpr uint32 both = 0x00010001u;
    constexpr uint32 minus_before = (0x10000u - Value::before_first) * both;
    return __viaddmin_s16x2_relu(pair & 0x7fff * both, minus_before, Value::larger * both);
}
/// The slots of two numbers in bytes, given those without signs, each beyond `first` bytes.
__device__ inline uint32 slot_offsets(uint32 pair, uint32 places, uint32 first) {
    static_assert(Value::sign_slots == 1 << 11, "a sign moves from bit 15 to bit 13");
    return places * 4 + first * 0x00010001u | (pair >> 2 & 0x20002000u);
}

/// The larger ones of two times two numbers; NaN is none.
__device__ inline uint32 larger_pair(uint32 a, uint32 b) {
    uint32 larger;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

/// Not 0 where one of the halves is 0.
__device__ inline uint32 has_zero(uint32 pair) { return (pair - 0x00010001u) & ~pair & 0x80008000u; }

/// Logits of bf16 in shared memory that are counted by their values while they come, each part of the block's
/// tokens in `counts` of its own, which begin as zeros: histograms of masses, and the mass of a part, are
/// then made of values instead of tokens. Tokens whose values have no slot of their own are looked up one by
/// one, where there are any that may have a mass.
template <class Layout, LoadHint hint>
struct ValueHome : SharedHome<Layout, hint> {
    using Base = SharedHome<Layout, hint>;
    static constexpr bool counts_values = true;
    static constexpr int pairs = Layout::vector / 2;
    static constexpr int parts = value_parts(Layout::geometry, has_filters);
    static constexpr int part_warps = Layout::geometry.warps() / parts;
    static constexpr int part_steps = Layout::steps / parts;  ///< steps of a warp where all look at one part
    static_assert(sizeof(Element) == 2 && pairs >= 1, "two elements a word");

    __device__ float load(const Tensors& tensors, int64 row, bool will_count) {
        is_counted_ = will_count;
        if (!will_count) return Base::load(tensors, row, false);
        const Element* from = tensors.logits + row * tensors.logits_stride;
        const uint32 first_address = shared_address(counts);
        uint32 largest = infinities;
        constexpr int ahead = Layout::steps < 4 ? Layout::steps : 4;  // loads under way in a lane
        typename Layout::Words words[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) words[i] = Layout::template fetch<hint>(from, i);
        for (int first = 0; first < Layout::steps; first += ahead) {
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const int step = first + i;
                if (step >= Layout::steps) break;
                uint32 pair[pairs];
                memcpy(pair, &words[i], sizeof(pair));
                *reinterpret_cast<typename Layout::Words*>(this->elements + Layout::place(step)) = words[i];
                if (step + ahead < Layout::steps) words[i] = Layout::template fetch<hint>(from, step + ahead);
                count_packet(pair, step, first_address, largest);
            }
        }
        return fmaxf(__uint_as_float(largest << 16), __uint_as_float(largest & 0xffff0000u));
    }
    /// The token of a value: of counted ones only the first that is infinite has an index.
    __device__ int index_of(float value) const {
        if (!is_counted_) return Base::index_of(value);
        if (value != infinity) return 0;
        for (int step = 0; step < Layout::steps; ++step) {
            float logits[Layout::vector];
            this->logits(step, logits);
            for (int i = 0; i < Layout::vector; ++i) {
                if (logits[i] == value) return Layout::token(step) + i;
            }
        }
        return vocabulary;
    }

    /// The slot of the lane's number among the few that may have a mass in a bin, the largest first, -1
    /// behind them; false where they are more than lanes, or some have no slot.
    __device__ bool slots_of_bin(uint32 bin, int& slot) const {
        const float low = this->scaling().largest + this->edge(Bin::mass(bin, 0), -Base::margin);
        const float high = this->scaling().largest + this->edge(Bin::mass(bin, bins - 1) + 1, Base::margin);
        const bool is_negative = high < 0.0f;
        const float near = is_negative ? -high : low;
        const float far = is_negative ? -low : high;
        if (!(near > Value::least && far < Value::most)) return false;
        const int first = static_cast<int>(__float_as_uint(near) >> 16) - 1;
        const int last = static_cast<int>(__float_as_uint(far) >> 16) + 1;
        const int bits = is_negative ? first + lane_index() : last - lane_index();
        slot = bits >= first && bits <= last ? Value::slot(bits | (is_negative ? 1u << 15 : 0u)) : -1;
        if (slot >= 0 && !Value::is_inside(slot)) slot = -1;
        return last - first < 32;
    }
    __device__ uint32 mass_of_slot(int slot) const { return mass_of(Value::of(slot), this->scaling()); }
    /// Adds to `kept`, for each part, the thread's share of the masses from `least` on.
    __device__ void add_kept(uint32 least, uint64 (&kept)[parts]) const {
        for_each_value([&](int slot) {
            const uint32 mass = mass_of(Value::of(slot), this->scaling());
            if (!Value::is_inside(slot) || mass < least) return;
#pragma unroll
            for (int p = 0; p < parts; ++p)
                kept[p] += static_cast<uint64>(mass) * counts[p * value_slots + slot];
        });
        for_each_outside([&](uint32 mass) {
#pragma unroll
            for (int p = 0; p < parts; ++p) kept[p] += p == part() && mass >= least ? mass : 0u;
        });
    }
    /// From here on the block's warps share the tokens of a part, in part_steps. After a barrier.
    __device__ void look_at(int which) {
        const int from = which * Layout::geometry.part_tokens(parts) +
                         warp_index() * part_steps * Layout::geometry.step_tokens();
        moved_ = from - warp_index() * Layout::geometry.warp_tokens();
        this->elements += moved_;
        looks_ = part_steps;
    }
    __device__ int looks() const { return looks_; }
    __device__ int token(int step) const { return Layout::token(step) + moved_; }

    /// Calls visit(bits, tokens) for all masses above 0; several times for some.
    template <class Visit>
    __device__ void visit_counted(Visit visit) const {
        for_each_value([&](int slot) {
            const uint32 mass = mass_of(Value::of(slot), this->scaling());
            const uint32 tokens = tokens_of(slot);
            if (tokens != 0 && mass != 0) visit(Bin::bits(mass), tokens);
        });
        for_each_outside([&](uint32 mass) { visit(Bin::bits(mass), 1u); });
    }
    template <class Visit>
    __device__ void visit_bin(uint32 bin, Visit visit) const {
        const float low = this->edge(Bin::mass(bin, 0), -Base::margin);
        const float high = this->edge(Bin::mass(bin, bins - 1) + 1, Base::margin);
        const auto visit_mass = [&](uint32 mass, uint32 tokens) {
            const uint32 bits = Bin::bits(mass);
            if (Bin::of(bits) == bin) visit(bits, tokens);
        };
        for_each_value([&](int slot) {
            const float distance = distance_of(Value::of(slot), this->scaling());
            if (!(distance >= low && distance <= high)) return;
            const uint32 tokens = tokens_of(slot);
            if (tokens != 0) visit_mass(mass_of_distance(distance, this->scaling()), tokens);
        });
        const float largest = this->scaling().largest;
        const bool are_inside = (largest + low > Value::least && largest + high < Value::most) ||
                                (largest + low > -Value::most && largest + high < -Value::least);
        if (are_inside) return;
        for_each_outside([&](uint32 mass) { visit_mass(mass, 1u); });
    }

    uint32* counts;

  private:
    static constexpr uint32 infinities = 0xff80ff80u;

    __device__ void count_packet(const uint32 (&pair)[pairs], int step, uint32 address, uint32& largest) {
        uint32 all = infinities;
#pragma unroll
        for (int p = 0; p < pairs; ++p) all &= pair[p];
        if (all == infinities) return;  // some rows have a lot of it
        uint32 least = Value::larger * 0x00010001u;
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
            const uint32 place = places(pair[p]);
            const uint32 offsets = slot_offsets(pair[p], place, 4 * value_slots * part());
            count_one(address + (offsets & 0xffffu));
            count_one(address + (offsets >> 16));
            least = __vminu2(least, place);
            largest = larger_pair(largest, pair[p]);
        }
        if (has_zero(least) != 0) smaller_ |= 1u << step % 32;
    }
    /// The part that the warp's own tokens are in.
    __device__ static int part() { return warp_index() / part_warps; }
    /// Tokens of a slot in all parts; 0 for what has no slot of its own.
    __device__ uint32 tokens_of(int slot) const {
        uint32 tokens = 0;
#pragma unroll
        for (int p = 0; p < parts; ++p) tokens += counts[p * value_slots + slot];
        return Value::is_inside(slot) ? tokens : 0;
    }
    /// Calls visit(slot). Lanes look at slots far from each other, whose masses are different and fall into
    /// different bins.
    template <class Visit>
    __device__ void for_each_value(Visit visit) const {
        constexpr int turns = Value::sign_slots / 32;
#pragma unroll 4
        for (int turn = 0; turn < 2 * turns / Layout::geometry.warps(); ++turn) {
            const int i = turn * Layout::geometry.warps() + warp_index();
            visit(i / turns * Value::sign_slots + lane_index() * turns + (i + lane_index()) % turns);
        }
    }
    /// Calls visit(mass) for tokens without a slot of their own.
    template <class Visit>
    __device__ void for_each_outside(Visit visit) const {
        const Scaling& scaling = this->scaling();
        const bool some_larger = has_larger() || sum_of(scaling.largest, scaling.lowest) <= -Value::most;
        for (int step = 0; step < Layout::steps; ++step) {
            if (!(some_larger ? has_outside(step) : smaller_ >> step % 32 & 1u)) continue;
            float logits[Layout::vector];
            this->logits(step, logits);
            for (int i = 0; i < Layout::vector; ++i) {
                if (fabsf(logits[i]) >= Value::least && fabsf(logits[i]) <= Value::most) continue;
                const uint32 mass = mass_of(logits[i], scaling);
                if (mass != 0) visit(mass);
            }
        }
    }
    __device__ bool has_larger() const {
        uint32 found = 0;
#pragma unroll
        for (int p = 0; p < parts; ++p) found |= counts[p * value_slots + Value::larger];
        return found != 0;
    }
    __device__ bool has_outside(int step) const {
        const auto words = this->words(step);
        uint32 pair[pairs];
        memcpy(pair, &words, sizeof(pair));
        uint32 found = 0;
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
            const uint32 place = places(pair[i]);
            found |= has_zero(place) | has_zero(Value::larger * 0x00010001u - place);
        }
        return found != 0;
    }

    bool is_counted_ = false;
    int looks_ = Layout::steps;
    int moved_ = 0;       ///< tokens from the lane's own to those of the part
    uint32 smaller_ = 0;  ///< bit i: some step i + 32 n has tokens in the slots of smaller numbers
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
    __device__ float load(const Tensors& tensors, int64 row, bool) {
        this->from = tensors.logits + row * tensors.logits_stride;
        float largest = -infinity;
#pragma unroll 4
        for (int step = 0; step < Layout::steps; ++step) this->see(step, this->words(step), largest);
        return largest;
    }
};

}  // namespace hone::sample
