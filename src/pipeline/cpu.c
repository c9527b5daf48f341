/* SPDX-License-Identifier: MIT
 *
 * The pipeline on the CPU. An image with one filter goes through small planes, band by band, so that the planes stay in
 * the caches and hardly any memory besides the image is touched. The system takes as long to make the pages of two
 * whole planes as all other work takes. Other images go through two whole sets of planes, which the filters read and
 * write in turn. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* ---- Plane buffers ---- */

/* Let BUFFER hold SIZE bytes, which are undefined. */
static bool grow_host(struct buffer *buffer, size_t size, struct error *error)
{
    if (size <= buffer->capacity)
        return true;
    free(buffer->data);
    *buffer = (struct buffer){.data = malloc(size)};
    if (buffer->data == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for planes of %zu bytes; close other programs",
                         size);
    buffer->capacity = size;
    return true;
}

void host_planes_release(struct pipeline *pipeline)
{
    for (int i = 0; i < 2; i++) {
        free(pipeline->host_planes[i].data);
        pipeline->host_planes[i] = (struct buffer){0};
    }
}

/* Lay out planes of HEIGHT rows in both buffers. Stores that bypass the caches need 64 bytes of alignment, which malloc
 * does not give: the data begins at the next multiple of 64. */
static bool host_planes_reserve(struct pipeline *pipeline, const struct image *image, int height,
                                struct plane planes[2], struct error *error)
{
    enum { ALIGNMENT = 64 };
    const int count = image_planes(image, pipeline->request->alpha);
    const enum sample sample = pipeline_sample(pipeline->request, image->bits);
    for (int i = 0; i < 2; i++) {
        size_t size;
        struct buffer *buffer = &pipeline->host_planes[i];
        if (!plane_layout(&planes[i], sample, image->width, height, count, &size, error) ||
            !grow_host(buffer, size + ALIGNMENT, error))
            return false;
        planes[i].data = (char *)buffer->data + (-(uintptr_t)buffer->data & (ALIGNMENT - 1));
    }
    return true;
}

/* ---- Bands ---- */

/* Rows of the planes for bands of ROWS rows: a band and its halo. The last band has no halo below, but it may have as
 * many more rows. */
static int band_height(const struct filter *filter, int rows)
{
    return rows + filter->height - 1;
}

/* The rows of a band; the image's height where it cannot go band by band. */
static int band_rows(const struct pipeline *pipeline, const struct image *image)
{
    enum {
        BAND_BYTES = 1 << 20, /* of each set of planes, for each thread: the two sets fill half of a core's cache */
        BAND_HALOS = 16,      /* at least so many rows for each row of the filter: bounds the work on the halo */
    };
    const struct request *request = pipeline->request;
    const int64_t bytes = (int64_t)sample_bytes(pipeline_sample(request, image->bits));
    const int64_t row = (int64_t)image->width * image_planes(image, request->alpha) * bytes;
    const int64_t rows = (int64_t)BAND_BYTES * thread_pool_threads(request->pool) / row;
    const int64_t least = BAND_HALOS * (int64_t)request->filters[0].height;
    const int64_t most = rows > least ? rows : least;
    /* In a chain, each filter would need the halo of all that follow. With BORDER_WRAP, the first rows need the
     * last. */
    if (request->count != 1 || request->border == BORDER_WRAP || most >= image->height)
        return image->height;
    return (int)most;
}

/* A view of ROWS rows of IMAGE from row FIRST on. */
static struct image rows_of_image(const struct image *image, int first, int rows)
{
    struct image part = *image;
    part.height = rows;
    part.samples += (size_t)first * (size_t)image->width * image_pixel_bytes(image);
    return part;
}

/* The same of each plane. */
static struct plane rows_of_planes(const struct plane *planes, int first, int rows)
{
    struct plane part = *planes;
    part.height = rows;
    part.data = (char *)part.data + (size_t)first * planes->row_bytes;
    return part;
}

/* Move COUNT rows from row FIRST of each plane to its top. */
static void move_rows_up(const struct plane *planes, int first, int count)
{
    for (int c = 0; count > 0 && c < planes->count; c++) {
        char *plane = (char *)planes->data + (size_t)c * planes->plane_bytes;
        memmove(plane, plane + (size_t)first * planes->row_bytes, (size_t)count * planes->row_bytes);
    }
}

/* Apply the one filter in place, in bands of ROWS rows. The planes hold a band with the halo above and below. Outputs
 * of the halo are dropped: the border beside them is not the image's. The image's rows above the band are already
 * filtered; the unfiltered ones are still in the planes of the band before. A last band of no more rows than the halo
 * below is joined to the band before, because a reflecting border needs that many rows. */
static bool run_bands(struct pipeline *pipeline, struct image *image, int rows, struct error *error)
{
    const enum alpha alpha = pipeline->request->alpha;
    const struct linear *linear = pipeline->request->linear;
    const struct plan *plan = &pipeline->plans[0];
    const int halo_above = plan->filter->anchor_y, halo_below = plan->filter->height - 1 - halo_above;
    struct plane planes[2];
    if (!host_planes_reserve(pipeline, image, band_height(plan->filter, rows), planes, error))
        return false;

    const struct plane *in = &planes[0], *out = &planes[1];
    bool done = true;
    int held = 0; /* the image row that the planes begin with */
    for (int first = 0, last; done && first < image->height; first = last) {
        last = image->height - first - rows <= halo_below ? image->height : first + rows;
        const int above = first < halo_above ? first : halo_above;
        const int below = image->height - last < halo_below ? image->height - last : halo_below;
        move_rows_up(in, first - above - held, above);
        held = first - above;
        const struct image unfiltered = rows_of_image(image, first, last - first + below);
        const struct plane fresh = rows_of_planes(in, above, unfiltered.height);
        image_split(&unfiltered, alpha, linear, &fresh);
        stages_end(pipeline->stages, STAGE_SPLIT);

        const struct plane from = rows_of_planes(in, 0, above + unfiltered.height);
        const struct plane to = rows_of_planes(out, 0, from.height);
        done = plan->variant->launch(plan, NULL, &from, &to, error);
        stages_end(pipeline->stages, STAGE_CONVOLVE);

        struct image filtered = rows_of_image(image, first, last - first);
        const struct plane band = rows_of_planes(out, above, filtered.height);
        if (done)
            image_merge(&band, alpha, linear, &filtered);
        stages_end(pipeline->stages, STAGE_MERGE);
    }
    return done;
}

/* ---- Whole images ---- */

static bool run_whole(struct pipeline *pipeline, struct image *image, struct error *error)
{
    const struct request *request = pipeline->request;
    struct plane planes[2];
    if (!host_planes_reserve(pipeline, image, image->height, planes, error))
        return false;
    image_split(image, request->alpha, request->linear, &planes[0]);
    stages_end(pipeline->stages, STAGE_SPLIT);
    bool done = true;
    int in = 0;
    for (size_t i = 0; done && i < request->count; i++, in = !in) {
        if (i > 0 && request_merges_between(request, image)) {
            image_merge(&planes[in], request->alpha, request->linear, image);
            image_split(image, request->alpha, request->linear, &planes[in]);
        }
        const struct plan *plan = &pipeline->plans[i];
        done = plan->variant->launch(plan, NULL, &planes[in], &planes[!in], error);
    }
    stages_end(pipeline->stages, STAGE_CONVOLVE);
    if (done)
        image_merge(&planes[in], request->alpha, request->linear, image);
    stages_end(pipeline->stages, STAGE_MERGE);
    return done;
}

bool run_on_cpu(struct pipeline *pipeline, struct image *image, struct error *error)
{
    const int rows = band_rows(pipeline, image);
    return rows < image->height ? run_bands(pipeline, image, rows, error) : run_whole(pipeline, image, error);
}

size_t host_planes_bytes(const struct pipeline *pipeline, const struct image *image)
{
    const struct request *request = pipeline->request;
    const enum sample sample = pipeline_sample(request, image->bits);
    const int rows = band_rows(pipeline, image);
    const int height = rows < image->height ? band_height(&request->filters[0], rows) : image->height;
    struct plane planes;
    size_t size;
    if (!plane_layout(&planes, sample, image->width, height, image_planes(image, request->alpha), &size, NULL))
        return SIZE_MAX;
    return 2 * size;
}
