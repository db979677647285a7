// `made_cache FILE PROBLEMS TRIALS_A_PROBLEM [hostile]`: a cache of made-up trials for the tests in a
// browser.
#include <cstdlib>
#include <iostream>

#include "tests/cli/made_trials.h"

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) {
        std::cerr << "usage: made_cache FILE PROBLEMS TRIALS_A_PROBLEM [hostile]\n";
        return 2;
    }
    hone::test::write_made_cache(argv[1], {.problems = std::strtoul(argv[2], nullptr, 10),
                                           .trials_a_problem = std::strtoul(argv[3], nullptr, 10),
                                           .hostile = argc == 5});
    return 0;
}
