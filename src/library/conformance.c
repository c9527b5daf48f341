/* SPDX-License-Identifier: MIT */
#include "batch/conformance.h"
#include "library/library.h"

#include <stdio.h>

enum gpuconv_status gpuconv_conformance(const struct gpuconv_context_options *options,
                                        struct gpuconv_conformance *found, struct gpuconv_error *error)
{
    const struct gpuconv_context_options defaults = {0}, *o = options != NULL ? options : &defaults;
    const struct conformance_request request = {.choice = o->uses_gpu ? CHOICE_CUDA : CHOICE_CPU, .device = o->device};
    struct conformance_result result;
    struct error reason;
    const bool done = library_check_reserved(o->reserved, sizeof o->reserved / sizeof *o->reserved, &reason) &&
                      conformance_run(&request, &result, &reason);
    *found = (struct gpuconv_conformance){0};
    if (done) {
        found->cases = (int)result.cases;
        found->mismatches = (int)result.mismatches;
        found->ran_on_cpu = (int)result.ran[BACKEND_CPU];
        found->ran_on_gpu = (int)result.ran[BACKEND_CUDA];
        snprintf(found->first, sizeof found->first, "%s", result.first);
    }
    return library_status(done, &reason, error);
}
