// Winners that need few images: kernels that came to a final and tie with its winner could as well have won,
// so that of each static problem those may be chosen that tie at most sizes. What is chosen is a winner like
// any other: dispatch knows of no choice. Pure functions.
#pragma once

#include <vector>

#include "cache/records.h"

namespace hone::tuner {

/// A problem's winner, and behind it the trials of its race.
using WonRace = std::vector<cache::Trial>;

struct SharedWinners {
    std::size_t images_before = 0;  ///< that the winners need, static problem by static problem
    std::size_t images = 0;         ///< that they need now
    std::size_t changed = 0;        ///< races with another winner
};

/// Gives races of one static problem on one GPU the same images, where the winners tie with kernels of the
/// same finals: image by image the one that most of the races without one can take, of equals the one that
/// is nearer to their winners, then by name; a race takes its winner's own where it is among these, else
/// what is nearest. The order of the races does not matter. Winners chosen in a step stay, and so do those of
/// other templates than this build's.
SharedWinners share_images(std::vector<WonRace>& races);

}  // namespace hone::tuner
