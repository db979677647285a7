/* An engine on the C interface, for tests that let its allocations fail: no failure may leave the interface
 * other than as a status with a text. Ends with 0 where that holds, whatever the statuses were. */
#include <hone.h>

#include <stdio.h>
#include <string.h>

static int broken = 0;

static hone_status told(const char* call, hone_status status) {
    if (status != HONE_OK && hone_last_error()[0] == '\0') {
        fprintf(stderr, "%s: status %d without a text\n", call, (int)status);
        broken = 1;
    }
    return status;
}

static void run(hone_runtime* runtime) {
    hone_rms_norm description = HONE_RMS_NORM_INIT;
    description.hidden = 4096;
    description.max_rows = 512;
    hone_operator* op = NULL;
    char text[4096];
    size_t length = 0;
    told("explain", hone_rms_norm_explain(runtime, &description, 16, HONE_TEXT, text, sizeof text, &length));
    if (told("prepare", hone_rms_norm_prepare(runtime, &description, &op)) != HONE_OK) {
        if (op != NULL) broken = 1;
        return;
    }
    hone_norm_args args = HONE_NORM_ARGS_INIT;
    args.x = args.weight = (void*)(1 << 24);
    args.out = (void*)(2 << 24);
    for (int rows = 1; rows <= 512; rows *= 2) told("run", hone_norm_run(op, NULL, &args, rows));
    told("run beyond the most rows", hone_norm_run(op, NULL, &args, 513));
    told("run without x", hone_norm_run(op, NULL, NULL, 1));
    told("report", hone_operator_report(op, HONE_JSON, text, sizeof text, &length));
    told("freeze", hone_runtime_freeze(runtime));
    hone_operator_destroy(op);
}

int main(void) {
    hone_runtime* runtime = NULL;
    if (told("create", hone_runtime_create(NULL, &runtime)) == HONE_OK) {
        run(runtime);
    } else if (runtime != NULL) {
        broken = 1;
    }
    hone_runtime_destroy(runtime);
    return broken;
}
