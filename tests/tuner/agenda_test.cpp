// Who races what where several GPUs share a workload.
#include "tuner/search/agenda.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

using namespace hone;
using namespace hone::tuner;
using namespace std::chrono_literals;
using Meeting = Agenda::Meeting;
using Turn = Agenda::Turn;

namespace {

std::vector<bool> open(std::size_t problems) { return std::vector<bool>(problems, true); }

std::vector<std::chrono::milliseconds> alike(std::size_t problems) {
    return std::vector<std::chrono::milliseconds>(problems, 1ms);
}

std::size_t raced(Agenda& agenda, std::size_t hand, const std::vector<bool>& is_open) {
    const std::optional<Agenda::Task> task = agenda.next(hand, is_open);
    REQUIRE(task);
    CHECK(task->turn == Turn::race);
    return task->problem;
}

}  // namespace

TEST_CASE("who has raced all of its own takes what is last on the list that takes longest yet") {
    Agenda agenda({{0}, {1, 2, 3}, {4, 5}}, {1ms, 1ms, 1ms, 1ms, 5ms, 5ms});
    const std::vector<bool> all = open(6);
    CHECK(raced(agenda, 0, all) == 0);
    CHECK(agenda.ahead(0, all, 3) == std::vector<std::size_t>{5, 4, 3});
    CHECK(agenda.ahead(1, all, 12) == std::vector<std::size_t>{1, 2, 3, 5, 4});
    CHECK(raced(agenda, 0, all) == 5);
    CHECK(raced(agenda, 0, all) == 4);
    CHECK(raced(agenda, 0, all) == 3);
    CHECK(raced(agenda, 1, all) == 1);
    CHECK(agenda.count(0) == 4);
    CHECK(agenda.count(1) == 2);
    CHECK(agenda.count(2) == 0);
    CHECK(agenda.waiting(1) == std::vector<std::size_t>{2});
}

TEST_CASE("a hand begins with what it asks for, if its list has that yet, and goes on in its order") {
    Agenda agenda({{0, 1, 2, 3}, {4, 5}}, alike(6));
    const std::vector<bool> all = open(6);
    const auto next = [&](std::optional<std::size_t> first) { return agenda.next(0, all, first)->problem; };
    CHECK(next(2) == 2);
    CHECK(agenda.waiting(0) == std::vector<std::size_t>{0, 1, 3});
    CHECK(next(2) == 0);  // it has been raced
    CHECK(next(4) == 1);  // another's
    CHECK(next(3) == 3);
    CHECK(next(std::nullopt) == 5);
}

TEST_CASE("what has an answer already stays with its owner") {
    Agenda agenda({{0}, {1, 2, 3}}, alike(4));
    const std::vector<bool> is_open{true, true, false, false};
    CHECK(raced(agenda, 0, is_open) == 0);
    CHECK(agenda.ahead(0, is_open, 12) == std::vector<std::size_t>{1});
    CHECK(raced(agenda, 0, is_open) == 1);
    CHECK(agenda.next_own(0) == std::nullopt);
    CHECK(raced(agenda, 1, is_open) == 2);
    CHECK(agenda.next_own(1) == 3);
    CHECK(agenda.next_own(1) == std::nullopt);
    CHECK_FALSE(agenda.next(0, is_open));
}

TEST_CASE("looks come after all races, and are shared, too") {
    Agenda agenda({{0, 1, 2}, {3}}, alike(4));
    const std::vector<bool> all = open(4);
    CHECK(raced(agenda, 0, all) == 0);
    agenda.add_look(0, 0);
    CHECK(raced(agenda, 0, all) == 1);
    agenda.add_look(0, 1);
    CHECK(raced(agenda, 1, all) == 3);
    CHECK(raced(agenda, 1, all) == 2);
    agenda.add_look(0, 9);
    agenda.drop_look(0, 9);
    CHECK(agenda.looks_ahead(0, 1) == std::vector<std::size_t>{0});
    const std::optional<Agenda::Task> taken = agenda.next(1, all);
    REQUIRE(taken);
    CHECK(taken->turn == Turn::look);
    CHECK(taken->problem == 1);
    CHECK_FALSE(taken->is_own);
    const std::optional<Agenda::Task> own = agenda.next(0, all);
    REQUIRE(own);
    CHECK(own->problem == 0);
    CHECK(own->is_own);
}

TEST_CASE("what a lost hand was at and had yet to do the others do, who wait for nothing else") {
    Agenda agenda({{0, 1}, {2}}, alike(3));
    const std::vector<bool> all = open(3);
    CHECK(raced(agenda, 1, all) == 2);
    CHECK(raced(agenda, 0, all) == 0);
    std::vector<std::size_t> done;
    {
        const std::jthread other([&] {
            while (const std::optional<Agenda::Task> task = agenda.next(1, all))
                done.push_back(task->problem);
            agenda.meet(1, Meeting::all_done);
        });
        while (agenda.waiting(0).size() > 0) std::this_thread::sleep_for(1ms);  // 1 is taken
        CHECK(agenda.leave(0));
        agenda.meet(0, Meeting::all_done);
        CHECK(done == std::vector<std::size_t>{1, 0});
    }
    CHECK_FALSE(agenda.leave(1));  // nobody else is left
}

TEST_CASE("a lost hand's answers that are there are taken over as well") {
    Agenda agenda({{0, 1}, {}}, alike(2));
    const std::vector<bool> none(2, false);
    CHECK(agenda.leave(0));
    CHECK(raced(agenda, 1, none) == 1);
    CHECK(raced(agenda, 1, none) == 0);
    CHECK_FALSE(agenda.next(1, none));
}

TEST_CASE("who has ended waits for answers of a hand that is lost before it begins") {
    Agenda agenda({{0}, {1, 2}}, alike(3));
    const std::vector<bool> is_open{true, false, false};
    std::vector<std::size_t> done;
    {
        const std::jthread other([&] {
            while (const std::optional<Agenda::Task> task = agenda.next(0, is_open))
                done.push_back(task->problem);
        });
        std::this_thread::sleep_for(50ms);  // it has raced its own and waits
        CHECK(agenda.leave(1));
    }
    CHECK(done == std::vector<std::size_t>{0, 2, 1});
}

TEST_CASE("hands hear what others told since they asked, not themselves") {
    Agenda agenda({{}, {}}, {});
    const auto trial = [](const char* candidate) {
        cache::Trial made{};
        made.candidate = candidate;
        return made;
    };
    agenda.tell(0, trial("before"));
    agenda.skip_news(1);
    agenda.tell(0, trial("a"));
    agenda.tell(1, trial("b"));
    CHECK(agenda.news(1).size() == 1);
    CHECK(agenda.news(1).empty());
    CHECK(agenda.news(0).front().candidate == "b");
}

TEST_CASE("many hands do each problem once, whoever is lost") {
    constexpr std::size_t problems = 300;
    constexpr std::size_t hands = 6;
    std::vector<std::vector<std::size_t>> lists(hands);
    for (std::size_t i = 0; i < problems; ++i) lists[i < problems / 2 ? 0 : i % hands].push_back(i);
    Agenda agenda(lists, alike(problems));
    const std::vector<bool> all = open(problems);
    std::array<std::atomic<int>, problems> races{};
    std::array<std::atomic<int>, problems> looks{};
    {
        std::vector<std::jthread> threads;
        for (std::size_t hand = 0; hand < hands; ++hand) {
            threads.emplace_back([&, hand] {
                std::size_t done = 0;
                while (const std::optional<Agenda::Task> task = agenda.next(hand, all)) {
                    if (hand < 2 && ++done == 20) {
                        CHECK(agenda.leave(hand));
                        break;
                    }
                    std::this_thread::sleep_for(50us);
                    ++(task->turn == Turn::race ? races : looks)[task->problem];
                    if (task->turn == Turn::race) agenda.add_look(hand, task->problem);
                }
                agenda.meet(hand, Meeting::all_done);
                CHECK(std::ranges::all_of(looks, [](const auto& count) { return count == 1; }));
            });
        }
    }
    CHECK(std::ranges::all_of(races, [](const auto& count) { return count == 1; }));
}
