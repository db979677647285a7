// What the examples share beside device memory: made-up inputs, comparing with numbers that the CPU has
// computed, and how they end. Exit codes: 0 the results are right, 1 something failed, 3 no usable GPU, 4 the
// results are wrong.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <hone/hone.h>

#include "device_memory.h"

namespace examples {

/// The upper half of a float, which bf16 tensors are made of.
struct Bf16 {
    std::uint16_t bits = 0;

    Bf16() = default;
    /// The nearest, ties to even. Not for NaN.
    explicit Bf16(float value) {
        std::uint32_t wide = 0;
        std::memcpy(&wide, &value, sizeof(wide));
        bits = static_cast<std::uint16_t>((wide + 0x7FFF + (wide >> 16 & 1)) >> 16);
    }
    explicit operator double() const {
        const std::uint32_t wide = std::uint32_t{bits} << 16;
        float value = 0;
        std::memcpy(&value, &wide, sizeof(value));
        return double{value};
    }
};

/// Uniform around `mean`, the same for the same seed.
template <class T = Bf16>
std::vector<T> random_values(std::size_t count, std::uint32_t seed, float deviation = 1, float mean = 0) {
    std::vector<T> values(count);
    std::uint64_t state = std::uint64_t{seed} << 32;
    for (T& value : values) {
        // SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
        std::uint64_t bits = state += 0x9E3779B97F4A7C15U;
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
        const float unit = static_cast<float>(bits >> 40) * 0x1p-23F - 1;  // -1 to 1
        value = T(mean + deviation * 1.7320508F * unit);
    }
    return values;
}

/// The sum of `count` products, in double.
template <class A, class B>
double dot(const A* a, const B* b, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

/// Results beside what they should be.
class Comparison {
  public:
    template <class T>
    void add(T found, double wanted) {
        const double difference = static_cast<double>(found) - wanted;
        difference_ += difference * difference;
        wanted_ += wanted * wanted;
        ++count_;
    }
    /// Over all numbers together, in the Euclidean norm.
    [[nodiscard]] double relative_error() const { return std::sqrt(difference_ / wanted_); }
    [[nodiscard]] std::size_t count() const { return count_; }

  private:
    double difference_ = 0;
    double wanted_ = 0;
    std::size_t count_ = 0;
};

/// A call that was refused ends the program: `why` is refusal() of the same call.
inline void must_run(const hone::Runtime& runtime, hone::Status status, const std::string& why) {
    if (status == hone::Status::ok) return;
    throw std::runtime_error("run(): " + std::string(hone::describe(status)) + ' ' + why +
                             runtime.last_launch_error());
}

inline void print_kernel(const hone::Explanation& explanation) {
    std::printf("%s\n  runs %s (%s)\n", explanation.problem.c_str(), explanation.bucket.candidate.c_str(),
                std::string(hone::name(explanation.bucket.origin)).c_str());
}
inline void print_kernel(const std::array<hone::Explanation, 2>& halves) {
    for (const hone::Explanation& half : halves) print_kernel(half);
}

/// Prints what came of it; the exit code.
inline int conclude(const hone::Runtime& runtime, const Comparison& results, double allowed) {
    const double error = results.relative_error();
    const bool is_right = error <= allowed;  // NaN is not
    std::printf("%zu results on %s: relative error %.1e (allowed %.0e)%s\n", results.count(),
                runtime.device_name().c_str(), error, allowed, is_right ? "" : ": WRONG");
    return is_right ? 0 : 4;
}

/// main() of every example.
inline int run(int (*example)()) {
    try {
        return example();
    } catch (const hone::Error& error) {
        std::fprintf(stderr, "%s: %s\n%s\n", error.where().c_str(), error.what(), error.hint().c_str());
        return error.kind() == hone::ErrorKind::no_gpu ? 3 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace examples
