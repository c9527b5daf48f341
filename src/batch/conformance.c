/* SPDX-License-Identifier: MIT
 *
 * Each digest of a vector is a job in memory, which goes the way of every image from file to file. pixels-1-files.md
 * has the meaning of the lines, and the formulas of the pictures (chapter V). */
#include "batch/conformance.h"

#include "base/text.h"
#include "batch/batch.h"
#include "container/png.h"
#include "container/zlib.h"
#include "variants/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line. Each name is in it once, and make_vectors.py writes a blank after each colon: so a search finds its value. */
struct line {
    const char *text, *end;
};

/* A digest, as a job. */
struct part {
    struct job job; /* first, so that a job is a part */
    char id[48], digest[80];
    bool is_refused; /* there must be no result */
    struct recipe recipe;
    struct job_settings settings;
    struct blob file; /* the input */
};

struct conformance {
    const struct conformance_request *request;
    struct conformance_result *result;
    struct line left; /* the lines that are not done */
    size_t next;      /* the next part of the first of them */
    struct error error;
};

/* ---- Lines ---- */

static const char *find(const struct line *line, const char *name)
{
    char key[32];
    const int length = snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = memmem(line->text, (size_t)(line->end - line->text), key, (size_t)length);
    return found != NULL ? found + length : NULL;
}

static int find_number(const struct line *line, const char *name, int missing)
{
    const char *value = find(line, name);
    return value != NULL ? (int)strtol(value, NULL, 10) : missing;
}

/* Copy a string to TO, of SIZE bytes, without escapes. Returns false if there is none, or if it is too long. */
static bool find_string(const struct line *line, const char *name, char *to, size_t size)
{
    const char *at = find(line, name), *const last = to + size - 1;
    if (at == NULL || *at++ != '"')
        return false;
    for (; at < line->end && *at != '"' && to < last; at++) {
        const bool is_escaped = *at == '\\';
        at += is_escaped;
        const char *escape = is_escaped && *at != '\0' ? strchr("n\nr\rt\t", *at) : NULL;
        *to++ = escape != NULL ? escape[1] : *at;
    }
    *to = '\0';
    return at < line->end && *at == '"';
}

/* ---- Inputs ---- */

struct picture {
    char kind[16], opacity[16];
    uint32_t width, height, channels, bits, seed;
};

static uint32_t make_number(const struct picture *picture, uint32_t n)
{
    uint32_t k = 2654435769u * picture->seed + n;
    k = (k ^ k >> 16) * 2146121005u;
    k = (k ^ k >> 15) * 2221713035u;
    return k ^ k >> 16;
}

static uint32_t make_sample(const struct picture *p, uint32_t i)
{
    const uint32_t white = p->bits == 16 ? 65535 : 255, shift = 32 - p->bits, r = make_number(p, i);
    const uint32_t c = i % p->channels, x = i / p->channels % p->width, y = i / p->channels / p->width;
    const uint32_t levels[] = {0, white, (r >> 16 & 255) * (white / 255), (r >> 16 & 7) * (white / 255)};
    if (p->channels % 2 == 0 && c == p->channels - 1 && p->opacity[0] != '\0')
        return strcmp(p->opacity, "opaque") == 0 ? white : levels[r >> 8 & 3];
    if (strcmp(p->kind, "extremes") == 0)
        return white * (r >> 31);
    if (strcmp(p->kind, "smooth") == 0)
        return white * (x * (3 + c) + y * (5 - c)) / (8 * (p->width + p->height)) + (r >> (shift + 5));
    if (strcmp(p->kind, "blocks") == 0)
        return make_number(p, 4 * (y / 8 * ((p->width + 7) / 8) + x / 8) + c) >> shift;
    if (strcmp(p->kind, "words") == 0 || strcmp(p->kind, "rare") == 0) {
        const struct picture other = {.seed = p->seed + 1};
        const uint32_t word = make_number(p, i / 11), level = make_number(&other, 11 * (word >> 26 & 15) + i % 11);
        if (strcmp(p->kind, "rare") == 0 && (word >> 23 & 7) > 1)
            return r >> 24;
        return (level & 15) == 0 ? level >> 24 : level & 3;
    }
    if (strcmp(p->kind, "tiles") == 0)
        return make_number(p, 4 * (16 * (y % 16) + x % 16) + c) >> shift;
    if (strcmp(p->kind, "dots") == 0)
        return r < 1u << 27 ? white : 0;
    return (strcmp(p->kind, "plain") == 0 ? make_number(p, c) : r) >> shift;
}

static bool make_picture(const struct line *line, struct image *image, struct error *error)
{
    struct picture p = {.width = (uint32_t)find_number(line, "width", 0),
                        .height = (uint32_t)find_number(line, "height", 0),
                        .channels = (uint32_t)find_number(line, "channels", 0),
                        .bits = find_number(line, "bits", 8) == 16 ? 16 : 8,
                        .seed = (uint32_t)find_number(line, "seed", 0)};
    find_string(line, "kind", p.kind, sizeof p.kind);
    find_string(line, "opacity", p.opacity, sizeof p.opacity);
    if (!image_allocate(image, (int)p.width, (int)p.height, (int)p.channels, (int)p.bits, error))
        return false;
    for (uint32_t i = 0; i < image_samples(image); i++)
        if (p.bits == 16)
            image_samples16(image)[i] = (uint16_t)make_sample(&p, i);
        else
            image->samples[i] = (uint8_t)make_sample(&p, i);
    return true;
}

/* Put what the line says of orientation and light into FILE, a PNG, after its header. */
static bool add_chunks(const struct line *line, struct blob *file)
{
    enum { HEAD = PNG_SIGNATURE + PNG_CHUNK_OVERHEAD + PNG_HEADER_DATA };
    const int orientation = find_number(line, "orientation", -1), gamma = find_number(line, "gamma", -1);
    const int transfer = find_number(line, "cicp", -1);
    const uint8_t exif[26] = {'M', 'M', 0, '*', [7] = 8, [9] = 1, 1, 18, 0, 3, [17] = 1, [19] = (uint8_t)orientation};
    const uint8_t coding[] = {1, (uint8_t)transfer, 0, 1};
    uint8_t power[4];
    struct blob whole = {0};
    put_big32(power, (uint32_t)gamma);
    const bool done = blob_append(&whole, file->bytes, HEAD) &&
                      (transfer < 0 || png_chunk_append(&whole, "cICP", coding, sizeof coding)) &&
                      (gamma < 0 || png_chunk_append(&whole, "gAMA", power, sizeof power)) &&
                      (orientation < 0 || png_chunk_append(&whole, "eXIf", exif, sizeof exif)) &&
                      blob_append(&whole, file->bytes + HEAD, file->size - HEAD);
    blob_free(done ? file : &whole);
    if (done)
        *file = whole;
    return done;
}

/* Append the bytes of the hexadecimal DIGITS to FILE. */
static bool append_hexadecimal(const char *digits, struct blob *file)
{
    unsigned byte;
    bool done = true;
    for (; done && sscanf(digits, "%2x", &byte) == 1; digits += 2)
        done = blob_append(file, &(uint8_t){(uint8_t)byte}, 1);
    return done;
}

static bool make_file(const struct line *line, struct blob *file, struct error *error)
{
    char digits[4096];
    if (find_string(line, "file", digits, sizeof digits))
        return append_hexadecimal(digits, file) || error_no_memory(error, "a vector");
    const int quality = find_number(line, "file_quality", 0);
    const bool has_chunks =
        find(line, "orientation") != NULL || find(line, "gamma") != NULL || find(line, "cicp") != NULL;
    const struct codec_settings settings = {
        .quality = quality,
        .chroma_subsampling = jpeg_chroma_of(find_number(line, "file_subsampling", 0)),
    };
    const struct format *format = format_find_by_path(quality > 0 ? ".jpg" : has_chunks ? ".png" : ".pam");
    struct image image = {0};
    const bool done =
        make_picture(line, &image, error) && codec_encode(&image, format, &settings, &file->bytes, &file->size, error);
    image_free(&image);
    return done && (!has_chunks || add_chunks(line, file) || error_no_memory(error, "a vector"));
}

/* ---- Filters and options ---- */

static void set_line_options(const struct line *line, struct recipe *recipe, struct job_settings *settings)
{
    static const char *const modes[] = {
        [ALPHA_KEEP] = "keep", [ALPHA_PREMULTIPLY] = "premultiply", [ALPHA_FILTER] = "filter"};
    char alpha[16] = "premultiply", border[16] = "replicate", background[16] = "white";
    find_string(line, "alpha", alpha, sizeof alpha);
    find_string(line, "border", border, sizeof border);
    find_string(line, "background", background, sizeof background);
    while (recipe->alpha < ALPHA_FILTER && strcmp(alpha, modes[recipe->alpha]) != 0)
        recipe->alpha++;
    while (recipe->border < BORDER_ZERO && strcmp(border, border_name(recipe->border)) != 0)
        recipe->border++;
    recipe->linear = find(line, "linear") != NULL;
    settings->keep_orientation = find(line, "no-orient") != NULL;
    settings->codec.bits = find_number(line, "depth", 0);
    settings->codec.quality = find_number(line, "quality", CODEC_QUALITY);
    settings->codec.compression = find_number(line, "compression", CODEC_COMPRESSION);
    settings->codec.subsampling = find_number(line, "subsampling", 0);
    text_read_colour(background, settings->codec.background);
}

/* As filter_find, but no file replaces a built-in filter. */
static bool find_built_in(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    for (const struct builtin_filter *f = builtin_filters; f < builtin_filters + builtin_filter_count; f++)
        if (strcmp(f->name, spec) == 0)
            return filter_parse(f->text, f->size, spec, filter, error);
    return filter_find(spec, filter, filter16, error);
}

/* Let FILTER have the mask of the line. */
static bool set_mask(const struct line *line, struct filter *filter, struct error *error)
{
    const int width = find_number(line, "width", 0), height = find_number(line, "height", 0);
    struct picture p = {"", "", (uint32_t)width, (uint32_t)height, 1, 16, (uint32_t)find_number(line, "mask", 0)};
    struct mask *mask = mask_make(width, height);
    find_string(line, "kind", p.kind, sizeof p.kind);
    for (uint32_t i = 0; mask != NULL && i < p.width * p.height; i++)
        mask->levels[i] = (uint16_t)make_sample(&p, i);
    filter->region = (struct region){.is_set = true, .mask_file.path = "mask", .mask = mask};
    if (filter->filter16 != NULL)
        filter->filter16->region = filter->region;
    return mask != NULL || error_no_memory(error, "a mask");
}

/* The filters of the line; NULL if these are refused. */
static struct filter_chain *make_chain(const struct line *line, struct error *error)
{
    char text[4096];
    struct filter *filters = NULL;
    size_t count = 1;
    bool done;
    if (find_string(line, "filter", text, sizeof text)) {
        done = filter_find_all(text, find_built_in, &filters, &count, error);
    } else {
        filters = calloc(1, sizeof *filters);
        done = filters != NULL || error_no_memory(error, "a filter");
        done = done &&
               (find_string(line, "text", text, sizeof text) || error_set(error, ERROR_WORK, "has no filter")) &&
               filter_parse(text, strlen(text), "text", filters, error);
    }
    for (size_t i = 0; done && i < count; i++) {
        filter_set_options(&filters[i], find(line, "flip") != NULL, find(line, "abs") != NULL);
        done = find(line, "mask") == NULL || set_mask(line, &filters[i], error);
    }
    if (done)
        return chain_make(filters, count, error);
    filters_free(filters, count);
    return NULL;
}

/* ---- Results ---- */

static void add_mismatch(struct conformance_result *result, const char *id, const char *what)
{
    if (result->mismatches++ == 0)
        snprintf(result->first, sizeof result->first, "%s: %.*s", id, (int)sizeof result->first / 2, what);
}

/* Count the filters of a job, whose variants are joined by commas. */
static void count_filters(struct conformance_result *result, const char *names)
{
    size_t count;
    const struct variant *table = variants(&count);
    for (const char *name = names; *name != '\0'; name += *name == ',') {
        const size_t length = strcspn(name, ",");
        for (size_t i = 0; i < count; i++)
            result->filters[i] += strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0;
        name += length;
    }
}

static void record_part_result(void *context, const struct job_result *job, enum job_event event)
{
    struct conformance *conformance = context;
    struct conformance_result *result = conformance->result;
    const struct part *part = (const struct part *)job->job;
    const bool is_done = job->outcome == JOB_DONE, has_variant = conformance->request->variant != NULL;
    char digest[SHA256_DIGEST_STRING_LENGTH] = "";
    if (event != JOB_ENDED)
        return;
    if (!is_done && job->error.code == ERROR_MEMORY) { /* that says nothing about the build */
        conformance->error = job->error;
        return;
    }
    if (!is_done && !part->is_refused && has_variant && job->error.code == ERROR_USAGE) {
        result->not_taken++;
        return;
    }
    result->cases++;
    if (!is_done && !part->is_refused)
        add_mismatch(result, part->id, job->error.message);
    if (is_done && part->is_refused)
        add_mismatch(result, part->id, "is not refused");
    if (!is_done || part->is_refused)
        return;
    result->ran[job->backend]++;
    count_filters(result, job->variants);
    if (result->hardware[0] == '\0')
        pipeline_describe_hardware(job->backend, job->device, result->hardware, sizeof result->hardware);
    if (!part->settings.digests)
        SHA256Data(job->output, job->output_bytes, digest);
    if (strcmp(part->settings.digests ? job->digest : digest, part->digest) != 0)
        add_mismatch(result, part->id, part->settings.digests ? "other samples" : "another file");
}

/* ---- Jobs ---- */

static void release_part(void *context, struct job *job)
{
    struct part *part = (struct part *)job;
    (void)context;
    chain_release(part->recipe.chain);
    blob_free(&part->file);
    free(part);
}

/* The codec that writes the definition's JPEGs; NULL if this build lacks it. */
static const struct codec *find_jpeg_codec(void)
{
    const struct image shape = {.width = 1, .height = 1, .channels = 3, .bits = 8};
    const struct codec_settings settings = {.quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION};
    const struct codec *codec = codec_find_writer(format_find_by_path(".jpg"), &shape, &settings, NULL);
    return codec != NULL && strcmp(codec->name, "parallel-jpeg") == 0 ? codec : NULL;
}

/* Make the job of the part that the line has by NAME; files get SUFFIX. A filter that is refused is a case that is
 * done: then the result is NULL, as after an error. */
static struct part *make_part(struct conformance *conformance, const struct line *line, const char *name,
                              const char *suffix)
{
    struct conformance_result *result = conformance->result;
    struct error *error = &conformance->error, refusal = {.code = ERROR_NONE};
    struct part *part = calloc(1, sizeof *part);
    if (part == NULL) {
        error_no_memory(error, "the vectors");
        return NULL;
    }
    if (!find_string(line, "id", part->id, sizeof part->id)) {
        error_set(error, ERROR_WORK, "a line has no \"id\"; give vectors as in docs/spec/vectors.jsonl");
        release_part(NULL, &part->job);
        return NULL;
    }
    if (!make_file(line, &part->file, error)) {
        release_part(NULL, &part->job);
        return NULL;
    }
    part->is_refused = !find_string(line, name, part->digest, sizeof part->digest);
    part->settings.digests = *suffix == '\0';
    set_line_options(line, &part->recipe, &part->settings);
    /* libjpeg-turbo reads small JPEGs, unless the codec is named: so the reference goes with that, the others not. */
    if (part->settings.digests && find(line, "file_quality") != NULL &&
        (conformance->request->variant == NULL || !conformance->request->variant->is_reference))
        part->settings.codec.codec = find_jpeg_codec();
    part->recipe.chain = make_chain(line, &refusal);
    part->recipe.choice = conformance->request->choice;
    part->recipe.variant = conformance->request->variant;
    part->job = (struct job){.input = part->id,
                             .name = part->id,
                             .output = part->id,
                             .format = format_find_by_path(suffix),
                             .recipe = &part->recipe,
                             .settings = &part->settings,
                             .content = part->file.bytes,
                             .bytes = part->file.size,
                             .in_memory = true};
    if (part->recipe.chain != NULL)
        return part;
    result->cases++;
    if (refusal.code == ERROR_MEMORY)
        *error = refusal;
    else if (!part->is_refused || refusal.code != ERROR_USAGE)
        add_mismatch(result, part->id, refusal.message);
    release_part(NULL, &part->job);
    return NULL;
}

static struct job *take_next(void *context)
{
    static const char *const names[] = {"samples", "png", "jpeg"}, *const suffixes[] = {"", ".png", ".jpg"};
    struct conformance *conformance = context;
    struct line *left = &conformance->left;
    const bool jpeg = find_jpeg_codec() != NULL;
    struct part *part = NULL;
    while (part == NULL && left->text < left->end && conformance->error.code == ERROR_NONE) {
        const char *newline = memchr(left->text, '\n', (size_t)(left->end - left->text));
        const struct line line = {left->text, newline != NULL ? newline : left->end};
        const size_t i = conformance->next;
        const bool is_there = find(&line, names[i]) != NULL || (i == 0 && find(&line, "refused") != NULL);
        const bool is_jpeg = i == 2 || find(&line, "file_quality") != NULL;
        if (is_there && is_jpeg && !jpeg)
            conformance->result->not_taken++;
        else if (is_there)
            part = make_part(conformance, &line, names[i], suffixes[i]);
        conformance->next = (i + 1) % 3;
        if (conformance->next == 0)
            left->text = newline != NULL ? newline + 1 : left->end;
    }
    return part != NULL ? &part->job : NULL;
}

/* ---- The whole ---- */

static bool run_vectors(struct conformance *conformance, struct error *error)
{
    const struct recipe recipe = {.choice = conformance->request->choice};
    const struct job_settings settings = {.digests = true};
    const struct job_source source = {.next = take_next, .release = release_part, .context = conformance};
    const struct batch_callbacks callbacks = {.context = conformance, .report = record_part_result};
    struct gpu_start gpu = {.device = conformance->request->device, .connections = 1};
    struct report no_report = {.descriptor = -1};
    struct batch_totals totals;
    const struct batch_request request = {
        .recipe = &recipe,
        .settings = &settings,
        .source = &source,
        .workers = 1,
        .threads = 2,
        .report = &no_report,
        .gpus = &gpu,
        .gpu_count = recipe.choice == CHOICE_CUDA,
        .on_this_thread = true,
    };
    const bool done = batch_run(&request, &callbacks, &totals, error);
    gpu_start_end(&gpu);
    if (conformance->error.code != ERROR_NONE)
        *error = conformance->error;
    return done && conformance->error.code == ERROR_NONE;
}

bool conformance_run(const struct conformance_request *request, struct conformance_result *result, struct error *error)
{
    enum { TEXT_MAX = 1 << 24 };
    struct conformance conformance = {.request = request, .result = result};
    struct blob text = {0};
    size_t size = builtin_vectors_size;
    *result = (struct conformance_result){0};
    if (request->text != NULL)
        conformance.left = (struct line){request->text, request->text + request->size};
    else if (zlib_inflate_blob(builtin_vectors, &size, TEXT_MAX, &text) == ZLIB_DONE)
        conformance.left = (struct line){(const char *)text.bytes, (const char *)text.bytes + text.size};
    else
        return error_no_memory(error, "the vectors");
    const bool done = run_vectors(&conformance, error);
    blob_free(&text);
    return done;
}
