/* SPDX-License-Identifier: MIT
 *
 * A file of its own: the tests' stub of a GPU has another answer. */
#include "pipeline/pipeline.h"

#include <unistd.h>

/* The device files of NVIDIA's drivers: on a PC, in WSL, and on Tegra. */
bool pipeline_may_have_gpu(void)
{
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"};
    bool found = false;
    for (size_t i = 0; pipeline_has_cuda && i < sizeof files / sizeof *files; i++)
        found = found || access(files[i], F_OK) == 0;
    return found;
}
