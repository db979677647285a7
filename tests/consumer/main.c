/* The same in C, with the shared library. */
#include <hone.h>

#include <stdio.h>

int main(void) {
    hone_runtime* runtime = NULL;
    const hone_status status = hone_runtime_create(NULL, &runtime);
    printf("hone %s: %s\n", hone_version(),
           status == HONE_OK ? hone_runtime_device_name(runtime) : hone_last_error());
    hone_runtime_destroy(runtime);
    return status == HONE_OK || status == HONE_NO_GPU ? 0 : 1;
}
