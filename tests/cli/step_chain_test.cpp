// One model's step computed in two ways, on the fake driver.
#include "cli/decoder/step_chain.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "decoder/engine/running_model.h"
#include "kernel_templates/space.h"
#include "runtime/cuda/driver.h"
#include "tests/decoder/small_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::cli;

namespace {

constexpr decoder::StepSizes sizes{2, 100};

void never(const StepFault& fault) { FAIL(fault.why); }

decoder::ModelOptions options() {
    decoder::ModelOptions options = test::small_options();
    options.told_sequences = 2;
    options.may_compile_later = true;
    return options;
}

struct Bench {
    test::FakeMachine fakes;
    decoder::RunningModel model{options()};
    decoder::Forward& forward = model.forward();
    StepChain launched{forward, sizes, Norms::launched, never};
    StepChain shared{forward, sizes, Norms::shared, never};

    /// Kernels that the step would be captured with.
    [[nodiscard]] std::vector<Candidate> now() const {
        std::vector<Candidate> found;
        for (const decoder::StepKernel& kernel : forward.step_kernels(sizes))
            found.push_back(kernel.candidate);
        return found;
    }
    /// The first of them that is not there.
    [[nodiscard]] Candidate other(const decoder::StepKernel& kernel, std::size_t number) const {
        for (const RankedCandidate& ranked :
             ranked_space(kernel.problem, runtime::device_traits(model.gpu().driver(), 0))) {
            if (ranked.candidate != kernel.candidate && number-- == 0) return ranked.candidate;
        }
        FAIL("no such kernel");
        return kernel.candidate;
    }
};

std::size_t place_of(const StepChain& chain, decoder::Part part) {
    const auto& kernels = chain.kernels();
    return static_cast<std::size_t>(std::ranges::find(kernels, part, &decoder::StepKernel::part) -
                                    kernels.begin());
}

std::vector<Candidate> candidates_of(const StepChain& chain) {
    std::vector<Candidate> found;
    for (const decoder::StepKernel& kernel : chain.kernels()) found.push_back(kernel.candidate);
    return found;
}

}  // namespace

TEST_CASE("both ways to compute a step have kernels of their own, also where they have the same problem") {
    Bench bench;
    CHECK(ways_of(bench.forward, 2) == std::vector{Norms::launched, Norms::shared});
    CHECK(ways_of(bench.forward, 4) == std::vector{Norms::launched});
    CHECK(bench.launched.kernels().size() == bench.shared.kernels().size() + 1);
    const std::size_t place = place_of(bench.launched, decoder::Part::head);
    CHECK(place_of(bench.shared, decoder::Part::head) == place);
    bench.launched.take(place, bench.other(bench.launched.kernels()[place], 0));
    bench.shared.take(place, bench.other(bench.shared.kernels()[place], 1));
    bench.shared.take(0, bench.other(bench.shared.kernels()[0], 0));
    CHECK(candidates_of(bench.launched)[place] != candidates_of(bench.shared)[place]);
    for (StepChain* chain : {&bench.launched, &bench.shared, &bench.launched}) {
        chain->enter();
        CHECK(bench.now() == candidates_of(*chain));
        CHECK(chain->times(place, {bench.other(chain->kernels()[place], 2)}, 2).back().size() == 2);
        CHECK(bench.now() == candidates_of(*chain));
    }
}

TEST_CASE(
    "a step is replayed beside the same one computed in another way, and beside itself with other kernels") {
    Bench bench;
    const std::size_t place = place_of(bench.launched, decoder::Part::head);
    bench.launched.take(place, bench.other(bench.launched.kernels()[place], 0));
    const std::vector<Candidate> before = candidates_of(bench.shared);
    const auto [us, others] = bench.shared.against(bench.launched, 3);
    CHECK(us.size() == 3);
    CHECK(others.size() == 3);
    CHECK(us.front() != others.front());
    CHECK(bench.now() == before);  // the step is computed the first way again
    const auto [others_too, us_too] = bench.launched.against(bench.shared, 3);
    CHECK(us_too.front() == doctest::Approx(us.front()));
    CHECK(others_too.front() == doctest::Approx(others.front()));
    std::vector<Candidate> exchanged = before;
    exchanged[0] = bench.other(bench.shared.kernels()[0], 0);
    const auto [now, with] = bench.shared.beside(exchanged, 3);
    CHECK(now.size() == 3);
    CHECK(with.size() == 3);
    CHECK(bench.now() == before);
}
