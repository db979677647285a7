#include "decoder/forward/graph_race.h"

#include <chrono>

namespace hone::decoder {
namespace {

constexpr std::chrono::seconds longest_raced_step{10};

}  // namespace

std::vector<std::vector<double>> race(const StreamTimer& timer, std::span<const CUgraphExec> graphs,
                                      const std::function<void(int round)>& fill, int rounds,
                                      const FaultSink& on_fault) {
    const auto replay = [&](std::size_t number) {
        try {
            timer.launch(graphs[number]);
            const auto limit = std::chrono::steady_clock::now() + longest_raced_step;
            while (!timer.has_ended()) {
                if (std::chrono::steady_clock::now() > limit)
                    on_fault(number, true, "a step did not end within 10 s");
            }
        } catch (const runtime::CudaError& error) {
            on_fault(number, false, error.what());
        }
        return timer.us();
    };
    fill(0);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
        if (graphs[i] != nullptr) static_cast<void>(replay(i));
    }
    std::vector<std::vector<double>> us(graphs.size());
    for (int round = 0; round < rounds; ++round) {
        fill(round);
        for (std::size_t i = 0; i < graphs.size(); ++i) {
            const std::size_t turn = (i + static_cast<std::size_t>(round)) % graphs.size();
            if (graphs[turn] != nullptr) us[turn].push_back(replay(turn));
        }
    }
    return us;
}

}  // namespace hone::decoder
