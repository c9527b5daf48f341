/* SPDX-License-Identifier: MIT
 *
 * Why NVIDIA's driver cannot run this program's GPU code, in a sentence for users. It calls nothing of CUDA, so that
 * tests need no GPU. */
#ifndef GPUCONV_DEVICE_DRIVER_H
#define GPUCONV_DEVICE_DRIVER_H

#include "base/error.h"

/* NVIDIA's driver and the GPU. Versions of CUDA are numbers: 12040 is 12.4. */
struct driver {
    char release[32]; /* a space and the number of the driver's kernel module, " 580.159.04"; empty if unknown */
    int supported;    /* the newest version of CUDA that the driver supports; 0 if there is no driver */
    int built;        /* the version of CUDA that compiled the program */
    int capability;   /* the GPU's compute capability times 10; 0 if the driver does not get as far */
    bool needs_ptx;   /* the program has PTX for the GPU, and no machine code */
};

/* Fill ERROR; returns false. A driver runs programs of all minor versions of the CUDA that it supports, but compiles no
 * PTX that is newer than itself. The source is NVIDIA's "CUDA Compatibility", section "Minor Version Compatibility",
 * which has the numbers of releases. */
static inline bool driver_failure(const struct driver *driver, struct error *error)
{
    const int has = driver->supported, built = driver->built, capability = driver->capability;
    const char *wanted = built / 1000 == 12   ? "version 525 or later"
                         : built / 1000 == 13 ? "version 580 or later"
                                              : "a newer version";
    if (has == 0)
        return error_set(error, ERROR_NO_GPU,
                         "there is no NVIDIA driver on this machine (libcuda.so.1); install %s, or start the container "
                         "with its GPUs",
                         wanted);
    if (capability == 0)
        return error_set(error, ERROR_NO_GPU,
                         "the NVIDIA driver%s supports CUDA %d.%d at most, and this gpuconv needs CUDA %d.0; install "
                         "%s%s",
                         driver->release, has / 1000, has % 1000 / 10, built / 1000, wanted,
                         has >= 12000 ? ", or a gpuconv that CUDA 12 has compiled" : "");
    if (driver->needs_ptx)
        return error_set(error, ERROR_NO_GPU,
                         "the NVIDIA driver%s compiles PTX of CUDA %d.%d at most, and this gpuconv has PTX of CUDA "
                         "%d.%d for this GPU; update the driver, or build gpuconv with -Dgpu_arch=%d",
                         driver->release, has / 1000, has % 1000 / 10, built / 1000, built % 1000 / 10, capability);
    return error_set(error, ERROR_NO_GPU,
                     "this gpuconv has no code for a GPU of compute capability %d.%d, and gpuconv --version lists what "
                     "it has; use --backend cpu, or build it with -Dgpu_arch=%d if that is at least 75",
                     capability / 10, capability % 10, capability);
}

#endif
