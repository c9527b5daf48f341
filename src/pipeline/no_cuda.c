/* SPDX-License-Identifier: MIT
 *
 * The GPU's part of the pipeline in a build without CUDA: there is no GPU. */
#include "pipeline/pipeline_internal.h"

const bool pipeline_has_cuda = false;
const char pipeline_gpu_code[] = "none";

static bool no_cuda(struct error *error)
{
    return error_set(error, ERROR_NO_GPU, "this gpuconv was built without CUDA");
}

bool pipeline_count_gpus(int *count, struct error *error)
{
    *count = 0;
    return no_cuda(error);
}

bool pipeline_describe_gpu(int index, struct device_info *info, struct error *error)
{
    (void)index, (void)info;
    return no_cuda(error);
}

bool pipeline_may_have_gpu(void)
{
    return false;
}

void gpu_start_begin(struct gpu_start *start)
{
    (void)start;
}

void gpu_start_prepare(struct gpu_start *start)
{
    (void)start;
}

bool gpu_start_wait(struct gpu_start *start, enum gpu_step step, struct error *error)
{
    (void)start, (void)step;
    return no_cuda(error);
}

void gpu_start_wait_briefly(struct gpu_start *start, double seconds)
{
    (void)start, (void)seconds;
}

void gpu_start_release(struct gpu_start *start)
{
    (void)start;
}

void gpu_start_end(struct gpu_start *start)
{
    (void)start;
}

bool gpu_check(const struct resources *resources, struct error *error)
{
    (void)resources;
    return no_cuda(error);
}

bool batcher_takes(const struct pipeline_run *run)
{
    (void)run;
    return false;
}

bool gpu_open(struct pipeline_run *run, struct error *error)
{
    (void)run;
    return no_cuda(error);
}

int pipeline_join_images(const struct recipe *recipe, const struct images *in, const struct images *out,
                         struct image *joined_in, struct image *joined_out)
{
    (void)recipe, (void)in, (void)out, (void)joined_in, (void)joined_out;
    return 0;
}

bool pipeline_resize_images(struct pipeline *pipeline, const struct recipe *recipe, const struct image_pair *pairs,
                            size_t count, bool *is_done, struct error *error)
{
    (void)pipeline, (void)recipe, (void)pairs, (void)count, (void)is_done, (void)error;
    return true;
}

bool pipeline_open_device(int index, struct device **device, struct error *error)
{
    (void)index;
    *device = NULL;
    return no_cuda(error);
}

void pipeline_close_device(struct device *device)
{
    (void)device;
}

void pipeline_shrink(struct pipeline *pipeline)
{
    (void)pipeline;
}

void gpu_forget_taps(struct pipeline *pipeline, struct planned *planned, size_t number)
{
    (void)pipeline, (void)planned, (void)number;
}

void gpu_close(struct pipeline *pipeline, bool is_last)
{
    (void)pipeline, (void)is_last;
}

enum run_result run_on_gpu(struct pipeline_run *run, const struct end *in, struct end *out, bool *is_intact,
                           struct error *error)
{
    (void)run, (void)in, (void)out;
    *is_intact = true;
    no_cuda(error);
    return RUN_FAILED;
}

bool pipeline_decode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              const struct gpu_tensor *tensor, struct error *error)
{
    (void)pipeline, (void)pictures, (void)count, (void)tensor;
    return no_cuda(error);
}

bool pipeline_encode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              void (*wrap)(void *context, size_t index), void *context, struct error *error)
{
    (void)pipeline, (void)pictures, (void)count, (void)wrap, (void)context;
    return no_cuda(error);
}
