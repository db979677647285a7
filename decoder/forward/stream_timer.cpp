#include "decoder/forward/stream_timer.h"

namespace hone::decoder {

StreamTimer::StreamTimer(const Gpu& gpu)
    : gpu_(gpu), begin_(runtime::create_event(gpu.driver())), end_(runtime::create_event(gpu.driver())) {}

void StreamTimer::begin() const {
    const runtime::Driver& driver = gpu_.driver();
    runtime::check(driver, driver.cuEventRecord(begin_.get(), gpu_.stream()), "event");
}

void StreamTimer::end() const {
    const runtime::Driver& driver = gpu_.driver();
    runtime::check(driver, driver.cuEventRecord(end_.get(), gpu_.stream()), "event");
}

bool StreamTimer::has_ended() const { return runtime::reached(gpu_.driver(), end_.get()); }

double StreamTimer::us() const { return runtime::elapsed_us(gpu_.driver(), begin_.get(), end_.get()); }

void StreamTimer::launch(CUgraphExec graph) const {
    const runtime::Driver& driver = gpu_.driver();
    begin();
    runtime::check(driver, driver.cuGraphLaunch(graph, gpu_.stream()), "launching a step's graph");
    end();
}

double StreamTimer::replay_us(CUgraphExec graph) const {
    launch(graph);
    gpu_.wait();
    return us();
}

}  // namespace hone::decoder
