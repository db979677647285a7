// How many images are compiled at a time, over all pools that share it: where several GPUs are tuned side by
// side, one that has few images to compile leaves its share to the others. May be used by any thread.
#pragma once

#include <semaphore>

namespace hone::tuner {

class CompileSlots {
  public:
    /// At least 1.
    explicit CompileSlots(int count) : free_(count) {}

    /// Who waits here for one does so for as long as another image takes.
    void acquire() { free_.acquire(); }
    void release() { free_.release(); }

  private:
    std::counting_semaphore<> free_;
};

}  // namespace hone::tuner
