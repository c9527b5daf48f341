/* SPDX-License-Identifier: MIT
 *
 * The sentences about drivers that cannot run the GPU code. */
#include "kernels/device/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    struct driver driver;
    const char *message;
} cases[] = {
    {{"", 0, 12040, 0, false},
     "there is no NVIDIA driver on this machine (libcuda.so.1); install version 525 or later, or start the container "
     "with "
     "its GPUs"},
    {{"", 11080, 12090, 0, false},
     "the NVIDIA driver supports CUDA 11.8 at most, and this gpuconv needs CUDA 12.0; install version 525 or later"},
    {{" 550.54.15", 12040, 13010, 0, false},
     "the NVIDIA driver 550.54.15 supports CUDA 12.4 at most, and this gpuconv needs CUDA 13.0; install version 580 or "
     "later, or a gpuconv that CUDA 12 has compiled"},
    {{" 580.65.06", 13000, 14020, 0, false},
     "the NVIDIA driver 580.65.06 supports CUDA 13.0 at most, and this gpuconv needs CUDA 14.0; install a newer "
     "version, "
     "or a gpuconv that CUDA 12 has compiled"},
    {{" 530.30.02", 12010, 12040, 89, true},
     "the NVIDIA driver 530.30.02 compiles PTX of CUDA 12.1 at most, and this gpuconv has PTX of CUDA 12.4 for this "
     "GPU; "
     "update the driver, or build gpuconv with -Dgpu_arch=89"},
    {{" 570.86.10", 12080, 12040, 61, false},
     "this gpuconv has no code for a GPU of compute capability 6.1, and gpuconv --version lists what it has; use "
     "--backend cpu, or build it with -Dgpu_arch=61 if that is at least 75"},
};

static void test_each_fault_names_versions_and_the_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0};
        assert_false(driver_failure(&cases[i].driver, &error));
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error_status(error.code), STATUS_FAILED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fault_names_versions_and_the_way_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
