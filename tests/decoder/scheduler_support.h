// Options and requests of schedulers whose steps are looked at one by one.
#pragma once

#include "decoder/scheduling/scheduler.h"

namespace hone::test::scheduling {

inline const decoder::SchedulerOptions usual{.pages = 64,
                                             .page_size = 4,
                                             .max_sequences = 8,
                                             .max_step_tokens = 16,
                                             .least_prompt_part = 1,
                                             .max_context = 200};

inline decoder::Request request_of(int prompt, int more, int first = 0) {
    decoder::Request request{.prompt = {}, .max_new_tokens = more};
    for (int i = 0; i < prompt; ++i) request.prompt.push_back(first + i);
    return request;
}

}  // namespace hone::test::scheduling
