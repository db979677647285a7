/* An engine that only dispatches, through the C interface: makes a runtime, prepares a norm, runs it at two
 * sizes and asks why. Prints one line of JSON: how long it took to be ready, where the knowledge of each run
 * came from, and the worst status. Ends with 0 when all is well, 1 when the library refused something and
 * said so, 3 when it broke its contract: a failure without words, or an operator that is set after one. */
#include <hone.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static hone_status worst = HONE_OK;
static int broken;

/* Whether it went well; a refusal must have words. */
static int fine(hone_status status, const char* what) {
    if (status == HONE_OK) return 1;
    worst = status;
    const char* words = hone_last_error();
    if (words == NULL || words[0] == '\0') broken = 1;
    fprintf(stderr, "%s: %d %s\n", what, (int)status, words == NULL ? "" : words);
    return 0;
}

static void run(hone_operator* op) {
    hone_norm_args args = HONE_NORM_ARGS_INIT;
    args.x = args.weight = (void*)((size_t)1 << 24);
    args.out = (void*)((size_t)2 << 24);
    fine(hone_norm_run(op, NULL, &args, 1), "run");
    fine(hone_norm_run(op, NULL, &args, 16), "run");
}

static void explain(hone_runtime* runtime, const hone_rms_norm* norm) {
    static char text[1 << 16];
    size_t length = 0;
    if (!fine(hone_rms_norm_explain(runtime, norm, 16, HONE_TEXT, text, sizeof text, &length), "explain"))
        return;
    if (length == 0 || strlen(text) > length) broken = 1;
}

int main(void) {
    const double start = now_ms();
    double ready = 0;
    hone_counters counters = HONE_COUNTERS_INIT;
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    norm.hidden = 4096;
    norm.max_rows = 16;
    hone_runtime* runtime = NULL;
    hone_operator* op = NULL;
    if (fine(hone_runtime_create(NULL, &runtime), "create")) {
        const int prepared = fine(hone_rms_norm_prepare(runtime, &norm, &op), "prepare");
        if (prepared != (op != NULL)) broken = 1;
        ready = now_ms() - start;
        if (prepared) run(op);
        explain(runtime, &norm);
        fine(hone_runtime_counters(runtime, &counters), "counters");
        hone_operator_destroy(op);
        hone_runtime_destroy(runtime);
    } else if (runtime != NULL) {
        broken = 1;
    }
    printf("{\"ready_ms\": %.2f, \"exact\": %lu, \"fallback\": %lu, \"status\": %d}\n", ready,
           (unsigned long)counters.runs_exact, (unsigned long)counters.runs_fallback, (int)worst);
    return broken ? 3 : worst != HONE_OK;
}
