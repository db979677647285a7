// What the fake libraries do out of the ordinary, from the one environment variable HONE_FAKE_SCRIPT. Without
// it they are a machine with one H100-like GPU on which everything works.
//
// The script is rules separated by ';'. A rule is fields separated by ':', the first one its kind, the others
// key=value or a bare key. Numbers may be decimal or 0x.
//
//   'device:kind=h100+a10; launch:match=group_rows,threads=128:fail=700:after=7; nvml:throttle=0x40'
//
// Choosing events (kinds launch, compile, load, copy):
//   match=A,B     all of A, B must hold for the kernel. `name=value` is one of its constants (dtype,
//                 hidden, threads, ...) or kernel=NAME, source=PATH, arch=NAME, whole; a bare word is part
//                 of the kernel's or the source's name. `gpu=N` holds on that GPU (launch, load). Left
//                 out: every event.
//   previous=A,B  (launch) the same, for the last kernel launched that is not one of the measuring harness.
//   after=N       from the N-th chosen event of this process on (1 is the first).
//   times=N       for N events, then no more.
//   once=PATH     only for the process and event that can create the file PATH: once in any number of
//                 processes.
//   while=PATH    (launch) counts and fires only while there is a file PATH.
//
// device   count=N                 N GPUs of the same kind; 0 makes cuInit fail with CUDA_ERROR_NO_DEVICE
//          kind=h100|a10|mig       or several joined by '+': one GPU each
//          memory=BYTES            memory of each GPU
// driver   version=12040           what cuDriverGetVersion says
//          init=803                cuInit fails with this code
//          init_us=N               the first cuInit of a process takes so long
//          init_us_a_gpu=N         the same, for each GPU that it sees
// alloc    fail=2                  cuMemAlloc fails with this code
//          over=BYTES              (with fail) only for allocations larger than that
//          after=N, times=N        (with fail) as above, counting allocations
// free     waits                   memory is given back when all kernels have ended, as by the driver: where
//                                  one hangs, never
// load     fail=200                cuModuleLoadData fails with this code
// copy     hang                    a copy to the GPU in a stream never ends, as a kernel
// launch   fail=CODE               codes after which the process must end (700, 719, ...) are found at the
//                                  next call and stay, as on a GPU; others are returned by the launch itself
//          hang                    the kernel never ends: queries say not ready, waiting never returns
//          signal=N, exit=N        the process ends at the launch
//          us=X                    its duration in microseconds
//          slow=X                  its duration is multiplied by X
//          sleep_us=N              the launching thread really sleeps
//          late_us=N               (sample_row) its tokens are there so much later, and until then
//                                  queries say not ready and what is behind it in its stream waits
//          seeded                  (sample_row) a row's token is (31 * seed + 7 * counter) % 997, not 0;
//                                  998 in a step that embeds another token in this row than that of the
//                                  counter before
//          logits=N                (sample_row) its logits are N numbers of bf16 a row, and that of a token
//                                  is (seed + 3 * counter + token) % 8; (linear) that is what it makes of
//                                  rows that have been gathered, with (3 * position + token) % 8
//          write=ARG:value=V       when the kernel runs, its pointer argument number ARG (from 0) gets the
//                                  eight bytes V
//          offset=BYTES            (with write) so far behind the pointer
//          idle                    the kernel does not even what this driver's kernels do: see fake_cuda.cpp
// noise    percent=X:seed=N        durations are multiplied by 1 + X/100 * (standard normal), never less
//                                  than half
// compile  fail                    a compile error
//          hang                    never returns
//          signal=N, exit=N        the process ends
//          sleep_us=N              takes so long
//          log=PATH                adds a line to the file: the process, the source and its constants
//          meet=N                  (with log) goes on when the file has N lines; without them it fails
//          spill=BYTES             the report says so
//          registers=N, shared=N   the same
// nvrtc    version=12.4            archs=75+80+90
// nvml     none                    nvmlInit fails
//          version=580.159.04      the driver's version
//          throttle=MASK           clocks event reasons; with after=N, times=N only for those queries
//          tenant=PID              another process on every GPU; may be repeated
//          refuse=FUNCTION         that function says NOT_SUPPORTED
//          sm_mhz=N                the SM clock now
//          power_mw=N              power now, by which energy rises in real time; 0: it stands still
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hone::fake {

/// What a rule's `match` is held against: name=value words, and the names a bare word may be part of.
struct Subject {
    std::string words;  ///< "kernel=norm source=rmsnorm/a.cu threads=128"
    std::string names;  ///< "norm rmsnorm/a.cu"
};

struct Rule {
    std::string kind;
    std::map<std::string, std::string> fields;
    long hits = 0;

    [[nodiscard]] bool has(const std::string& key) const { return fields.contains(key); }
    [[nodiscard]] std::string text(const std::string& key) const;
    [[nodiscard]] long long number(const std::string& key, long long otherwise = 0) const;
    [[nodiscard]] double real(const std::string& key, double otherwise = 0) const;
};

[[nodiscard]] bool matches(const std::string& pattern, const Subject& subject);

class Script {
  public:
    /// The script of HONE_FAKE_SCRIPT. Ends the process with a message when it cannot be read: a misspelt
    /// script would make a test pass for nothing.
    [[nodiscard]] static Script from_environment();

    /// Counts the event for each rule of this kind that chooses it, and returns those that fire.
    [[nodiscard]] std::vector<const Rule*> fire(std::string_view kind, const Subject& subject,
                                                const Subject& previous = {});
    /// The last rule of this kind that has the key, or nullptr; counts nothing.
    [[nodiscard]] const Rule* setting(std::string_view kind, const std::string& key) const;
    [[nodiscard]] std::vector<const Rule*> settings(std::string_view kind, const std::string& key) const;

    [[nodiscard]] bool has_rules(std::string_view kind) const;

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
    std::vector<Rule> rules_;
};

/// Sleeps or ends the process if the rule says so.
void act_on_process(const Rule& rule);

}  // namespace hone::fake
