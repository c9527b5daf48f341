/* SPDX-License-Identifier: MIT
 *
 * A device of the emulated GPU for codecs. tests/emulated has another one, for other kernels. */
#include "kernels/device/stream.h"

#include <stdlib.h>

struct device {
    bool is_open;
};

bool device_count(int *count, struct error *)
{
    *count = 1;
    return true;
}

void device_expect_streams(int)
{
}

bool device_open(int, struct device **device, struct error *error)
{
    *device = (struct device *)calloc(1, sizeof **device);
    return *device != NULL || error_no_memory(error, "the emulated GPU");
}

void device_close(struct device *device)
{
    free(device);
}
