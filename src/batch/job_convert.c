/* SPDX-License-Identifier: MIT
 *
 * One image from the bytes of its file to the bytes of another: the steps of a job between reading and writing. */
#include "batch/job_internal.h"

#include "base/file.h"
#include "codec/gpu_codec.h"
#include "image/linear.h"
#include "metadata/littlecms.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- Memory ---- */

/* Will no image by the worker's recipe need memory for a GPU? */
static bool is_cpu_only(const struct job_worker *worker)
{
    return !worker->has_gpu || worker->recipe->choice == CHOICE_CPU;
}

/* Will the rows surely stream to ENCODER as they are filtered? Otherwise the image may have to be whole, for a GPU or
 * to turn it upright. */
static bool surely_streams(const struct job_worker *worker, const struct conversion *conversion,
                           const struct codec *encoder)
{
    return is_cpu_only(worker) && !conversion->shares && !conversion->widens && codec_reads_rows(&conversion->info) &&
           conversion->orientation <= 1 && encoder != NULL && codec_writes_rows(encoder);
}

/* The bands of an image that streams, also if the chosen codec does not support it. Rows that change their depth count
 * as fetched. */
static size_t bands_need(const struct conversion *conversion)
{
    const struct codec_info *info = &conversion->info;
    const struct image *shape = &conversion->image;
    const struct format *format = conversion->result->output_format;
    const size_t row = image_row_bytes(&conversion->produced), max = CODEC_BAND_BYTES;
    const bool converts =
        info->bits != shape->bits || format->max_bits < shape->bits || conversion->codec.transform != NULL;
    const struct row_sink sink = {.multiple = format->unit_rows > 1 ? format->unit_rows
                                              : row < max           ? (int)(max / row)
                                                                    : 1};
    struct row_source source = {.multiple = 1,
                                .raw_bytes = codec_raw_bytes(info) + (converts ? 2 * image_row_bytes(shape) : 0),
                                .readers = CODEC_READERS};
    const size_t in_order = pipeline_stream_need(&conversion->run, &source, &sink);
    source.any_order = info->codec->any_order;
    source.multiple = CODEC_UNIT_ROWS;
    const size_t other = source.any_order ? pipeline_stream_need(&conversion->run, &source, &sink) : 0;
    return other > in_order ? other : in_order;
}

/* Bytes of the program's own stack, and of a variant's rows, for each thread. */
enum { THREAD_BYTES = 1 << 19 };

/* A stream needs the file, what the codecs say, bands, and its output. That is expected to be as large as the file;
 * more is reserved when it grows. A whole image needs codec_whole_need, and the file counts twice, because a decoder
 * may copy it. For a GPU the pipeline keeps the samples, the data of the file, and as much again as the samples for the
 * stream of a PNG that the GPU encodes, with its metadata before it and as much after it.
 *
 * Metadata stay in memory while all these steps run, in a buffer of up to twice their size. Written, they have at most
 * twice their size, as hexadecimal digits: as a chunk and among all chunks, while the latter's buffer grows. */
static struct job_memory estimate_memory(const struct job_worker *worker, struct conversion *conversion, size_t size)
{
    const struct codec_info *info = &conversion->info;
    const struct image *shape = &conversion->image, *produced = &conversion->produced;
    const struct format *format = conversion->result->output_format;
    const struct codec *encoder =
        worker->settings->digests ? NULL : codec_find_writer(format, produced, &conversion->codec, NULL);
    const size_t threads = (size_t)thread_pool_threads(&worker->pool);
    const size_t metadata = 2 * metadata_bytes(&conversion->metadata);
    const bool converts = chain_needs_colours(worker->recipe->chain); /* the last picture's colours stay, too */
    struct end gpu;
    codec_plan_gpu_output(format, produced, &conversion->codec, &gpu);
    const size_t before = image_bytes(shape), after = image_bytes(produced);
    struct job_memory need = {
        .image = size + 4 * metadata + threads * THREAD_BYTES +
                 (worker->recipe->linear || converts ? sizeof(struct linear) : 0) +
                 (conversion->codec.transform != NULL ? TRANSFORM_BYTES : 0) +
                 (converts ? 2 * (sizeof(struct colours) + worker->recipe->chain->count * sizeof(struct filter)) : 0),
        .kept = is_cpu_only(worker)
                    ? 0
                    : (gpu.kind == END_PNG ? 2 : 1) * (before > after ? before : after) + size + 2 * metadata,
    };
    if (surely_streams(worker, conversion, encoder)) {
        const size_t largest = codec_file_bound(produced, format, &conversion->codec);
        conversion->streaming = need.image + codec_reader_need(info) + bands_need(conversion) +
                                codec_writer_need(encoder, produced, format, &conversion->codec);
        need.image = conversion->streaming + codec_file_need(size < largest ? size : largest);
        need.largest = conversion->streaming + codec_file_need(largest + metadata);
        return need;
    }
    const struct row_source image = {.image = shape};
    const struct row_sink sink = {.multiple = 1};
    need.image += size + codec_whole_need(info, produced, encoder, format, &conversion->codec) +
                  (worker->recipe->chain->count > 0 ? pipeline_stream_need(&conversion->run, &image, &sink) : 0);
    return need;
}

/* Is the image, whose shapes are known, the one that earlier jobs have decoded? They share none that was decoded into
 * other colours. */
static bool is_kept(const struct job_worker *worker, const struct conversion *conversion)
{
    const struct shared_input *input = &worker->input;
    const struct image *image = &conversion->image, *kept = &input->image;
    return (kept->samples != NULL || worker->pipeline.has_input) && conversion->codec.transform == NULL &&
           kept->width == image->width && kept->height == image->height && kept->channels == image->channels &&
           kept->bits == image->bits && input->orientation == conversion->orientation &&
           input->page == conversion->info.page && input->codec == conversion->info.codec;
}

/* Jobs with one input share the decoded image where the memory allows. Otherwise each does as it would alone. */
static struct job_memory estimate_shared_memory(struct job_worker *worker, struct conversion *conversion, size_t size)
{
    const size_t max = worker->workers->budget.max;
    struct shared_input *input = &worker->input;
    conversion->shares =
        conversion->codec.transform == NULL && (conversion->job->next != NULL || is_kept(worker, conversion));
    if (!is_kept(worker, conversion)) {
        job_forget_input(worker, false);
        input->image = conversion->image;
        input->orientation = conversion->orientation;
        input->page = conversion->info.page;
        input->codec = conversion->info.codec;
    }
    struct job_memory need = estimate_memory(worker, conversion, size);
    if (!conversion->shares)
        return need;
    const size_t result = image_bytes(&conversion->produced);
    if (need.image < max && result < max - need.image && need.kept <= max - need.image - result) {
        need.image += result;
        return need;
    }
    job_forget_input(worker, false);
    conversion->shares = false;
    return estimate_memory(worker, conversion, size);
}

struct job_memory job_estimate_memory(struct job_worker *worker, struct conversion *conversion, size_t size)
{
    struct job_memory need = estimate_shared_memory(worker, conversion, size);
    const size_t extra = codec_reader_extra(&conversion->info, &conversion->codec);
    const size_t largest = need.largest > need.image ? need.largest : need.image, max = worker->workers->budget.max;
    if (extra > max || largest > max - extra || need.kept > max - extra - largest)
        return need;
    conversion->codec.reader_extra = extra;
    conversion->streaming += extra;
    need.image += extra;
    need.largest = largest + extra;
    return need;
}

void job_release_buffers(struct job_worker *worker)
{
    pipeline_shrink(&worker->pipeline);
    budget_release(&worker->workers->budget, worker->kept);
    worker->kept = 0;
}

/* ---- Decoding ---- */

/* Let the image's shape and the metadata be upright. Decoding turns the samples. If the first filter is a thumbnail,
 * let the decoder make the image as small as it may. It makes means of levels, not of light: with linear light it makes
 * nothing smaller. */
static bool orient_shape(struct conversion *conversion)
{
    const struct job_worker *worker = conversion->worker;
    const struct filter_chain *chain = worker->recipe->chain;
    struct codec_info *info = &conversion->info;
    struct pipeline_input *input = &conversion->run.input;
    struct image full = conversion->image;
    conversion->orientation = worker->settings->keep_orientation ? 1 : conversion->metadata.orientation;
    const bool swaps = orientation_swaps(conversion->orientation);
    if (!worker->settings->keep_orientation &&
        !metadata_orient(&conversion->metadata, &full, &info->chroma_subsampling, &conversion->result->error))
        return false;
    if (info->codec->shrinks && !worker->recipe->linear && chain->count > 0)
        codec_shrink(info, filter_shrink(&chain->filters[0], full.width, full.height));
    conversion->result->shrink = info->shrink;
    conversion->image.width = swaps ? info->height : info->width;
    conversion->image.height = swaps ? info->width : info->height;
    input->shape = conversion->image;
    input->full_width = full.width;
    input->full_height = full.height;
    input->is_upright = conversion->orientation <= 1;
    return true;
}

/* ---- Colours ---- */

/* Set WEIGHTS, and *COLOURS, which the caller releases, to the colours of the picture. WEIGHTS are 0 if its primaries
 * are those of sRGB. */
static bool find_colours(struct conversion *conversion, struct colours **colours, int32_t weights[3][3],
                         struct error *error)
{
    struct job_worker *worker = conversion->worker;
    const bool grey = conversion->image.channels <= 2, in_light = worker->recipe->linear;
    struct linear *linear = pipeline_linear(&worker->pipeline, error);
    bool is_mixed = false;
    *colours = colours_make();
    if (*colours == NULL)
        return error_no_memory(error, "the colours of a picture");
    if (linear == NULL)
        return false;
    (*colours)->in_light = in_light;
    if (worker->colours != NULL) {
        memcpy((*colours)->levels, worker->colours->levels, sizeof worker->colours->levels);
    } else {
        linear_set(linear, &curve_srgb, 1, 16);
        memcpy((*colours)->levels, linear->tables[0].to16, sizeof worker->colours->levels);
    }
    const bool done = metadata_find_colours(&conversion->metadata, grey, in_light ? 16 : conversion->image.bits, linear,
                                            *colours, weights, &is_mixed, error);
    if (!is_mixed)
        memset(weights, 0, 3 * sizeof *weights);
    return done;
}

static bool are_equal(const struct colours *a, const struct colours *b)
{
    return a != NULL && a->curves == b->curves && a->in_light == b->in_light &&
           memcmp(a->light, b->light, sizeof a->light) == 0;
}

/* Let the decoder make sRGB by a profile of tables, which is no step of a recipe. */
static bool convert_decoded(struct conversion *conversion)
{
    struct job_worker *worker = conversion->worker;
    struct job_result *result = conversion->result;
    const struct point *point = &worker->recipe->chain->filters[0].point;
    const struct transform_samples samples = {.channels = conversion->info.channels,
                                              .bits = conversion->info.bits,
                                              .is_cmyk = conversion->info.cmyk,
                                              .black_point = point->black_point};
    if (!filter_needs_colours(&worker->recipe->chain->filters[0]))
        return error_set(&result->error, ERROR_WORK,
                         "has a profile of tables, so to-srgb must be the first filter; put it first");
    if (!transform_set(&worker->transform, &samples, &conversion->metadata.icc, &result->error))
        return false;
    conversion->codec.transform = worker->transform;
    snprintf(result->converted_by, sizeof result->converted_by, "%s", transform_name(worker->transform));
    metadata_set_srgb(&conversion->metadata);
    return true;
}

/* If a filter needs the colours of the picture, let the run have a recipe with these. Pictures of the same colours have
 * one chain, so their plans are kept. */
static bool convert_recipe(struct conversion *conversion)
{
    struct job_worker *worker = conversion->worker;
    struct error *error = &conversion->result->error;
    struct filter_chain *chain = worker->recipe->chain;
    if (!chain_needs_colours(chain))
        return true;
    if (metadata_has_tables(&conversion->metadata, conversion->image.channels <= 2) && !convert_decoded(conversion))
        return false;
    const bool is_srgb = metadata_is_srgb(&conversion->metadata, conversion->image.channels <= 2);
    struct colours *colours = NULL;
    int32_t weights[3][3] = {{0}};
    bool done = is_srgb || find_colours(conversion, &colours, weights, error);
    const bool is_same =
        worker->converted_from == chain && worker->is_srgb == is_srgb &&
        (is_srgb || (are_equal(worker->colours, colours) && memcmp(weights, worker->weights, sizeof weights) == 0));
    if (done && !is_same) {
        const int32_t scale = weights[0][0] + weights[0][1] + weights[0][2]; /* 0 or COLOURS_SCALE */
        struct filter_chain *converted = chain_set_colours(chain, colours, weights, scale, error);
        done = converted != NULL;
        if (done) {
            job_forget_colours(worker);
            worker->converted = *worker->recipe;
            worker->converted.chain = converted;
            worker->converted_from = chain_keep(chain);
            worker->is_srgb = is_srgb;
            worker->colours = colours;
            memcpy(worker->weights, weights, sizeof weights);
            colours = NULL;
        }
    }
    colours_release(colours);
    if (done) {
        chain = worker->converted.chain;
        worker->converted = *worker->recipe;
        worker->converted.chain = chain;
        conversion->run.recipe = &worker->converted;
    }
    return done;
}

void job_forget_colours(struct job_worker *worker)
{
    chain_release(worker->converted.chain);
    chain_release(worker->converted_from);
    colours_release(worker->colours);
    worker->converted.chain = worker->converted_from = NULL;
    worker->colours = NULL;
}

/* ---- Shapes ---- */

/* Find the channels of the image in the filters, and of the result. A grey image must not have a profile of colours,
 * nor colours one of grey: colours with a profile stay colours, and a profile of grey is dropped where colours are
 * made. */
static void find_channels(struct conversion *conversion)
{
    struct metadata *metadata = &conversion->metadata;
    struct blob *icc = &metadata->icc;
    const int channels = conversion->image.channels;
    const struct metadata_strip strip = conversion->worker->settings->strip;
    const bool has_profile = icc->size > 0 && !metadata_strips_colours(metadata, strip, channels <= 2) &&
                             !chain_needs_colours(conversion->worker->recipe->chain);
    int working, result;
    chain_channels(conversion->worker->recipe->chain, channels, &working, &result);
    if (has_profile && working == channels && result < channels)
        result = channels;
    if (has_profile && working > channels) {
        blob_free(icc);
        metadata->dropped |= (uint64_t)1 << (METADATA_ICC * METADATA_REASONS + METADATA_OTHER_COLOUR);
    }
    conversion->widens = working > channels;
    conversion->image.channels = conversion->run.input.shape.channels = working;
    conversion->produced = conversion->image;
    conversion->produced.channels = conversion->run.produced_channels = result;
}

/* Find the size of the image after the filters, and let the metadata be of that. */
static bool resize_shape(struct conversion *conversion)
{
    const struct job_worker *worker = conversion->worker;
    const struct pipeline_input *input = &conversion->run.input;
    struct chroma_subsampling *chroma = &conversion->info.chroma_subsampling;
    struct error *error = &conversion->result->error;
    struct geometry geometry;
    if (!chain_geometry(worker->recipe->chain, input->full_width, input->full_height, &geometry, error) ||
        !metadata_resize(&conversion->metadata, &geometry, chroma, error))
        return false;
    find_channels(conversion);
    conversion->produced.width = geometry.width;
    conversion->produced.height = geometry.height;
    conversion->result->not_enlarged |= geometry.is_not_enlarged;
    conversion->result->region_cut |= geometry.is_cut;
    conversion->codec.chroma_subsampling =
        conversion->codec.subsampling > 0 ? jpeg_chroma_of(conversion->codec.subsampling) : *chroma;
    return true;
}

bool job_find_shapes(struct conversion *conversion)
{
    const bool done = orient_shape(conversion) && convert_recipe(conversion) && resize_shape(conversion);
    if (!done)
        conversion->result->input_bytes = conversion->size;
    return done;
}

static struct codec_input codec_input(const struct conversion *conversion)
{
    return (struct codec_input){
        .bytes = conversion->bytes,
        .size = conversion->size,
        .name = file_input_name(conversion->job->input),
        .info = &conversion->info,
        .settings = &conversion->codec,
    };
}

/* Open the reader, and note which codec it is. */
static bool open_input(struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    const struct codec_input input = codec_input(conversion);
    const bool done = codec_reader_open(&conversion->reader, &input, &result->error);
    if (done)
        conversion->info.codec = result->decoder = conversion->reader.codec;
    phases_end(&result->phases, PHASE_DECODE);
    return done;
}

static void drop_input(struct conversion *conversion)
{
    codec_reader_close(&conversion->reader);
    if (conversion->bytes != conversion->job->content && conversion->bytes != conversion->worker->input.bytes)
        free(conversion->bytes);
    conversion->bytes = NULL;
}

static void free_image(struct conversion *conversion)
{
    if (conversion->image.samples == conversion->worker->input.image.samples) /* other jobs need it */
        conversion->image.samples = NULL;
    image_free(&conversion->image);
}

void job_forget_input(struct job_worker *worker, bool is_last)
{
    struct shared_input *input = &worker->input;
    image_free(&input->image);
    worker->pipeline.has_input = false;
    if (!is_last)
        return;
    free(input->bytes);
    *input = (struct shared_input){0};
}

/* Decode the whole image and turn it upright. Let the next jobs with this input share it. */
static bool decode_input(struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    struct shared_input *input = &conversion->worker->input;
    const bool done = (conversion->reader.codec != NULL || open_input(conversion)) &&
                      codec_reader_decode(&conversion->reader, &conversion->image, &result->error) &&
                      image_orient(&conversion->image, conversion->orientation, &result->error) &&
                      image_widen(&conversion->image, conversion->run.input.shape.channels, &result->error);
    drop_input(conversion);
    if (done && conversion->shares) {
        input->image = conversion->image;
        input->decoder = result->decoder;
    }
    phases_end(&result->phases, PHASE_DECODE);
    return done;
}

/* Note what a GPU could decode and encode. */
static void find_gpu_codecs(const struct job_settings *settings, struct conversion *conversion)
{
    const struct codec_input input = codec_input(conversion);
    conversion->in.orientation = conversion->orientation;
    if (!conversion->widens && conversion->image.samples == NULL && conversion->codec.transform == NULL)
        conversion->gpu_decoder = codec_plan_gpu_input(&input, &conversion->in);
    if (!settings->digests) /* they write nothing */
        conversion->gpu_encoder = codec_plan_gpu_output(conversion->result->output_format, &conversion->produced,
                                                        &conversion->codec, &conversion->out);
    conversion->run.input.gpu_decodes = conversion->in.kind;
    conversion->run.input.gpu_encodes = conversion->out.kind;
}

/* Note what is known of the input, which is decoded, or will be while it is filtered. */
static void describe_input(struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    const struct codec_info *info = &conversion->info;
    result->width = conversion->run.input.full_width;
    result->height = conversion->run.input.full_height;
    result->output_width = conversion->produced.width;
    result->output_height = conversion->produced.height;
    result->output_channels = conversion->produced.channels;
    result->channels = info->channels;
    result->bits = conversion->image.bits;
    result->input_bits = info->bits;
    result->input_format = info->format;
    result->cmyk_converted |= info->cmyk && conversion->codec.transform == NULL;
    result->other_content |= info->other_content;
    result->page = info->page;
    result->pages = info->pages;
    result->dropped_on_read |= conversion->metadata.dropped;
    result->decoder = info->codec;
}

static void choose_job_backend(struct job_worker *worker, struct conversion *conversion)
{
    conversion->in.image = &conversion->image;
    conversion->out.image = &conversion->filtered;
    conversion->run.input.busy = workers_busy(worker->workers);
    if (!is_cpu_only(worker))
        find_gpu_codecs(worker->settings, conversion);
    pipeline_choose(&conversion->run);
}

bool job_decode(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    result->input_bytes = conversion->size;
    const bool is_decoded = worker->input.image.samples != NULL; /* by an earlier job */
    if (is_decoded) {
        conversion->image = worker->input.image;
        conversion->info.codec = worker->input.decoder;
    }
    conversion->run.shares_input = conversion->shares;
    choose_job_backend(worker, conversion);
    /* A GPU takes the whole image. Unless it decodes it, the CPU does, while the GPU starts. */
    const bool on_cpu = conversion->run.backend == BACKEND_CPU,
               decodes = !is_decoded && (on_cpu || conversion->gpu_decoder == NULL);
    if (decodes && !open_input(conversion))
        return false;
    conversion->streams = !worker->settings->digests && !conversion->shares && on_cpu && !conversion->widens &&
                          conversion->orientation <= 1 && conversion->reader.source.read != NULL;
    if (decodes && !conversion->streams && !decode_input(conversion))
        return false;
    struct linear *linear = worker->recipe->linear ? pipeline_linear(&worker->pipeline, &result->error) : NULL;
    if (worker->recipe->linear && linear == NULL)
        return false;
    if (linear != NULL)
        result->curve = metadata_set_linear(&conversion->metadata, conversion->image.channels <= 2,
                                            conversion->image.bits, linear, &result->unread_curves);
    if (chain_needs_colours(worker->recipe->chain))
        metadata_set_srgb(&conversion->metadata);
    if (!metadata_strip(&conversion->metadata, worker->settings->strip, conversion->image.channels <= 2,
                        &result->error))
        return false;
    describe_input(conversion);
    worker->report(worker->context, result, JOB_INPUT_KNOWN);
    return true;
}

/* ---- Filtering ---- */

static void record_variants(const struct pipeline_run *run, struct job_result *result)
{
    size_t used = 0;
    for (size_t i = 0; i < run->recipe->chain->count && used < sizeof result->variants; i++)
        used += (size_t)snprintf(result->variants + used, sizeof result->variants - used, "%s%s", i > 0 ? "," : "",
                                 run->planned->plans[i].variant->name);
    result->backend = run->backend;
    result->device = run->backend == BACKEND_CUDA ? run->pipeline->resources->device : -1;
}

/* Make the head of a file that a GPU will encode, with the metadata. */
static bool begin_output(struct conversion *conversion)
{
    struct end *out = &conversion->out;
    struct job_result *result = conversion->result;
    const bool done = codec_begin_file(&conversion->produced, out, &result->error) &&
                      result->output_format->write_metadata(&conversion->metadata, &out->head.bytes, &out->head.size,
                                                            &result->dropped_on_write, &result->error);
    phases_end(&result->phases, PHASE_ENCODE);
    return done;
}

/* Let the rows of the output be encoded as they come, and decoded unless the image is. */
static bool open_rows(struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    struct codec_writer *writer = &conversion->writer;
    struct job_worker *worker = conversion->worker;
    const bool is_decoded = conversion->image.samples != NULL;
    if (!is_decoded && conversion->reader.codec == NULL && !open_input(conversion))
        return false;
    conversion->in.source = &conversion->reader.source;
    conversion->out.sink = &writer->sink;
    const bool done =
        codec_writer_open(writer, &conversion->produced, result->output_format, &conversion->codec, &result->error);
    phases_end(&result->phases, PHASE_ENCODE);
    atomic_store(&worker->step, writer->finishes_late ? JOB_STEP_FILTER
                                : is_decoded          ? JOB_STEP_STREAM_DECODED
                                                      : JOB_STEP_STREAM);
    return done;
}

/* Let the ends suit the backend, for pipeline_run. */
static bool set_ends(void *context, struct error *error)
{
    struct conversion *conversion = context;
    const struct pipeline_run *run = &conversion->run;
    struct end *in = &conversion->in, *out = &conversion->out;
    const bool on_gpu = run->backend == BACKEND_CUDA, digests = conversion->worker->settings->digests;
    const bool writes_rows = !on_gpu && !digests && codec_writes_rows(conversion->result->encoder);
    if (in->kind == END_ROWS) /* a pixel was translucent, so read the image again */
        codec_reader_close(&conversion->reader);
    codec_writer_close(&conversion->writer);
    conversion->filtered.samples = NULL;
    image_free(&conversion->aside);
    in->kind = conversion->image.samples != NULL    ? END_HOST
               : conversion->streams && writes_rows ? END_ROWS
               : on_gpu && !run->needs_samples      ? run->input.gpu_decodes
                                                    : END_HOST;
    out->kind = writes_rows ? END_ROWS : on_gpu ? run->input.gpu_encodes : END_HOST;
    if (in->kind == END_HOST && conversion->image.samples == NULL && !decode_input(conversion))
        return false;
    if (writes_rows)
        return open_rows(conversion);
    atomic_store(&conversion->worker->step, JOB_STEP_FILTER);
    if (conversion->shares && !on_gpu) {
        const struct image *shape = &conversion->produced;
        if (!image_allocate(&conversion->aside, shape->width, shape->height, shape->channels, shape->bits, error))
            return false;
        conversion->filtered = conversion->aside;
    }
    return out->kind == END_HOST || out->head.size > 0 || begin_output(conversion);
}

/* Filter the image, and decode and encode it on the way where that is possible. */
static bool filter_image(struct conversion *conversion)
{
    struct error *error = &conversion->result->error;
    conversion->run.set_ends = set_ends;
    conversion->run.context = conversion;
    const bool done = pipeline_run(&conversion->run, &conversion->in, &conversion->out, error);
    drop_input(conversion);
    if (!done)
        return false;
    if (conversion->in.kind == END_JPEG || conversion->in.kind == END_PNG)
        conversion->result->decoder = conversion->gpu_decoder;
    if (conversion->filtered.samples != conversion->image.samples)
        free_image(conversion);
    record_variants(&conversion->run, conversion->result);
    return true;
}

/* ---- Encoding ---- */

/* Put the metadata into the output. An output without its metadata is not written. */
static bool close_output(struct conversion *conversion, size_t size)
{
    struct job_result *result = conversion->result;
    result->output_bytes = size;
    const bool done =
        codec_may_grow(&conversion->codec, size + 2 * metadata_bytes(&conversion->metadata), &result->error) &&
        result->output_format->write_metadata(&conversion->metadata, &conversion->output, &result->output_bytes,
                                              &result->dropped_on_write, &result->error);
    phases_end(&result->phases, PHASE_ENCODE);
    return done;
}

/* Complete the file that a GPU has encoded, where it is. It is copied if it must outlive the pipeline's next image, or
 * the GPU. */
static bool end_output(const struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    result->encoder = conversion->gpu_encoder;
    conversion->is_borrowed = worker->resources.page_locked && !conversion->job->in_memory;
    conversion->output =
        codec_end_file(&conversion->out, !conversion->is_borrowed, &result->output_bytes, &result->error);
    phases_end(&result->phases, PHASE_ENCODE);
    return conversion->output != NULL;
}

/* Encode the filtered image, unless that is done, and complete the file. */
static bool finish_output(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    struct codec_writer *writer = &conversion->writer;
    const bool has_rows = conversion->out.kind == END_ROWS, is_encoded = !has_rows && conversion->out.kind != END_HOST;
    size_t size = 0;
    atomic_store(&worker->step, has_rows && !writer->finishes_late ? JOB_STEP_WRITE : JOB_STEP_ENCODE);
    if (is_encoded && !end_output(worker, conversion))
        return false;
    const bool is_last = !worker->resources.page_locked && !conversion->job->all_pages;
    if (!has_rows && is_last) { /* a single image: encoding can use the memory */
        pipeline_leave_gpu(&worker->pipeline);
        job_release_buffers(worker);
    }
    if (is_encoded)
        return true;
    const bool done = has_rows ? codec_writer_finish(writer, &conversion->output, &size, &result->error)
                               : codec_encode(&conversion->filtered, result->output_format, &conversion->codec,
                                              &conversion->output, &size, &result->error);
    codec_writer_close(writer);
    return done && close_output(conversion, size);
}

/* ---- All steps ---- */

bool job_plan(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    const struct format *format = result->output_format;
    result->encoder = codec_find_writer(format, &conversion->produced, &conversion->codec, &result->error);
    result->alpha_dropped = !format->holds_alpha && image_has_alpha(&conversion->image);
    const int file_bits = conversion->info.heif.bits; /* 9 to 12 bits a sample become 16 */
    result->reduced = (result->bits > 8 && file_bits > 8 ? file_bits : result->bits) > format->max_bits;
    if (result->encoder == NULL || !pipeline_plan(&conversion->run, &conversion->image, &result->error))
        return false;
    worker->report(worker->context, result, JOB_PLANNED);
    return true;
}

bool job_convert(struct job_worker *worker, struct conversion *conversion)
{
    return filter_image(conversion) && finish_output(worker, conversion);
}

/* ---- Digests ---- */

static void digest_image(const struct image *image, char text[SHA256_DIGEST_STRING_LENGTH])
{
    enum { PIECE = 2048 };
    const uint32_t shape[] = {htobe32((uint32_t)image->width), htobe32((uint32_t)image->height),
                              htobe32((uint32_t)image->channels), htobe32((uint32_t)image->bits)};
    const size_t count = image_samples(image);
    uint16_t piece[PIECE];
    SHA2_CTX hash;
    SHA256Init(&hash);
    SHA256Update(&hash, (const uint8_t *)shape, sizeof shape);
    if (image_sample_bytes(image) == 1) {
        SHA256Update(&hash, image->samples, count);
    } else {
        for (size_t i = 0; i < count; i++) {
            piece[i % PIECE] = htobe16(image_samples16(image)[i]);
            if (i % PIECE == PIECE - 1 || i == count - 1)
                SHA256Update(&hash, (const uint8_t *)piece, (i % PIECE + 1) * sizeof *piece);
        }
    }
    SHA256End(&hash, text);
}

bool job_digest(struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    const char *expected = conversion->job->digest;
    const bool filters = conversion->run.recipe->chain->count > 0;
    if (filters && !(pipeline_plan(&conversion->run, &conversion->image, &result->error) && filter_image(conversion)))
        return false;
    digest_image(filters ? &conversion->filtered : &conversion->image, result->digest);
    phases_end(&result->phases, PHASE_ENCODE);
    return expected == NULL || strcasecmp(expected, result->digest) == 0 ||
           error_set(&result->error, ERROR_WORK, "its digest is %s, not %s as in the list; compare the pictures",
                     result->digest, expected);
}

void job_free(struct conversion *conversion)
{
    drop_input(conversion);
    codec_writer_close(&conversion->writer);
    free_image(conversion);
    image_free(&conversion->aside);
    metadata_free(&conversion->metadata);
    blob_free(&conversion->out.head);
    if (!conversion->is_borrowed)
        free(conversion->output);
}
