// The measuring worker's loop: holds one GPU and answers requests about one problem at a time. It knows no
// families and reads no files: arguments, plans and images arrive as data. Ends by itself when the GPU cannot
// be trusted any more.
//   describe  {}                             -> {device}; the first one that it sees
//   hello     {ordinal}                      -> {gpu}
//   harness   {} + cubin                     -> {verdict}
//   begin     {setup, limit_ms} + cubin      -> {verdict, sets}
//   load      {image, plan} + cubin          -> {verdict}
//   verify    {candidate, limit_ms}          -> {verdict, elapsed_us}
//   time      {candidate, replays, limit_ms} -> {samples}
//   interleave {candidates, rounds, limit_ms} -> {samples: [...]}
//   forget    {}                             -> {verdict}; all loaded images
//   end       {}                             -> {verdict}
#pragma once

#include "tuner/worker/channel.h"

namespace hone::tuner {

/// Exit codes: how a worker says why it left.
enum class WorkerExit : int {
    closed = 0,
    protocol = 1,
    deadline = 3,      ///< the GPU did not finish in time
    sticky_error = 4,  ///< the context is lost; the reply before said how
};

/// Returns the process's exit code.
int serve_measurements(Channel& channel);

}  // namespace hone::tuner
