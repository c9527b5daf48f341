/* SPDX-License-Identifier: MIT
 *
 * The phases of one pair. */
#include "compare/compare_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "codec/format.h"
#include "metadata/metadata.h"

#include <stdlib.h>
#include <string.h>

/* A file of a pair: one of the two images, or the mask. */
struct side {
    struct row_file *file;
    uint8_t *bytes;
    size_t size;
    struct codec_info info;
    struct image image, small; /* SMALL becomes the thumbnail; it may be made before pixels of IMAGE are ignored */
    struct metadata metadata;
    struct error error; /* why the phase failed, if `failed` is true */
    bool failed;
};

/* The mask is the side after the two images. */
enum { MASK = 2, SIDES };

struct pair {
    struct pair_worker *worker;
    struct compare_row *row;
    struct codec_settings codec[SIDES];
    struct side sides[SIDES];
    int channels;                  /* the channels that both images get before they are compared; 0 until known */
    struct thumbnails *thumbnails; /* NULL if none are wanted */
    uint8_t *antialiased;          /* a byte for each pixel, 1 if it is antialiased; NULL if antialiased pixels count */
    bool (*phase)(struct pair *pair, int side);
};

/* ---- Memory ---- */

/* Reserve memory for this pair, NEED bytes together with its earlier reservation. While the pair waits for memory, it
 * keeps the files that it has read: two for each thread. */
static bool reserve_pair_memory(struct pair *pair, size_t need, struct error *error)
{
    struct pair_worker *worker = pair->worker;
    struct memory_budget *budget = &worker->workers->budget;
    if (!budget_check(budget, need, pair->row->name, error))
        return false;
    budget_raise(budget, need, &worker->reserved);
    return true;
}

/* An upper bound of the bytes that a side needs, decoded: its image and what a codec inflates, or the picture of the
 * difference and its file; the flags of antialiased pixels; and its metadata. */
static size_t side_need(const struct pair *pair, int i)
{
    const struct codec_info *info = &pair->sides[i].info;
    const int bits = codec_bits(info, &pair->codec[i]);
    const struct image shape = {.width = info->width,
                                .height = info->height,
                                .channels = i < MASK && pair->channels > 0 ? pair->channels : info->channels,
                                .bits = bits > info->bits ? bits : info->bits};
    const size_t part = pair->worker->settings->rules.takes_metadata ? METADATA_PART_MAX
                        : pair->thumbnails != NULL                   ? METADATA_LONG_TEXT_MAX
                                                                     : 0;
    const size_t metadata = part > 0 ? 4 * (part + info->size) : 0;
    const size_t pixels = (size_t)info->width * (size_t)info->height;
    const size_t flags = pair->worker->settings->rules.ignores_antialiasing ? 5 * pixels : 0; /* and a picture in RGB */
    return info->size + 3 * image_bytes(&shape) + flags + codec_reader_need(info) + metadata;
}

/* Reserve the memory that decoding the sides from FIRST to LAST needs. If it fits into the budget, reserve also the
 * extra memory that makes decoding faster. */
static bool reserve_sides(struct pair *pair, int first, int last, struct error *error)
{
    size_t need = 0, extra = 0;
    for (int i = first; i <= last; i++) {
        need += side_need(pair, i);
        extra += codec_reader_extra(&pair->sides[i].info, &pair->codec[i]);
    }
    const size_t max = pair->worker->workers->budget.max;
    const bool fits = extra <= max && need <= max - extra;
    for (int i = first; i <= last && fits; i++)
        pair->codec[i].reader_extra = codec_reader_extra(&pair->sides[i].info, &pair->codec[i]);
    return reserve_pair_memory(pair, fits ? need + extra : need, error);
}

/* ---- Phases of a file ---- */

static bool read_side_file(struct pair *pair, int i)
{
    struct side *side = &pair->sides[i];
    const size_t max = budget_input_max(&pair->worker->workers->budget);
    if (!file_read(side->file->path, max, &side->bytes, &side->size, NULL, &side->error))
        return false;
    side->file->bytes = side->size;
    return true;
}

static bool inspect_side(struct pair *pair, int i)
{
    struct side *side = &pair->sides[i];
    struct row_file *file = side->file;
    const char *name = file_input_name(file->path);
    if (!codec_inspect(side->bytes, side->size, name, &pair->codec[i], &side->info, &side->error) ||
        !codec_choose_reader(&side->info, &pair->codec[i], name, &side->error))
        return false;
    file->width = side->info.width;
    file->height = side->info.height;
    file->channels = side->info.channels;
    file->bits = codec_bits(&side->info, &pair->codec[i]);
    file->other_content = side->info.other_content;
    return true;
}

/* Record what --metadata compares. A damaged profile is dropped, and is neither equal to another one nor to none. */
static bool record_metadata(struct side *side, struct error *error)
{
    side->file->orientation = side->metadata.orientation;
    const uint64_t reasons = side->metadata.dropped >> METADATA_ICC * METADATA_REASONS;
    return (reasons & ((1u << METADATA_REASONS) - 1)) == 0 ||
           error_set(error, ERROR_WORK,
                     "has a profile that is damaged or too large; repair it, or leave --metadata out");
}

static bool decode_side(struct pair *pair, int i)
{
    struct side *side = &pair->sides[i];
    const struct codec_input input = {.bytes = side->bytes,
                                      .size = side->size,
                                      .name = file_input_name(side->file->path),
                                      .info = &side->info,
                                      .settings = &pair->codec[i]};
    const bool takes_metadata = pair->worker->settings->rules.takes_metadata;
    metadata_free(&side->metadata);
    side->metadata.max = METADATA_PART_MAX;
    side->metadata.keep_text = true;
    return codec_read_picture(&input, &side->image, takes_metadata ? &side->metadata : NULL, &side->error) != NULL &&
           (!takes_metadata || record_metadata(side, &side->error));
}

/* Widen the image of a side to pair->channels. */
static bool widen_side(struct pair *pair, int i)
{
    return image_widen(&pair->sides[i].image, pair->channels, &pair->sides[i].error);
}

static void run_phase(void *context, int64_t index, int thread)
{
    struct pair *pair = context;
    (void)thread;
    pair->sides[index].failed = !pair->phase(pair, (int)index);
}

/* Run a phase for both files, at the same time if the worker has threads for that. Fails with the error of the expected
 * file, if both fail. */
static bool run_both(struct pair *pair, bool (*phase)(struct pair *, int), struct error *error)
{
    pair->phase = phase;
    parallel_for(&pair->worker->both, 2, 2, run_phase, pair);
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->sides[i];
        if (!side->failed)
            continue;
        error_add_subject(&side->error, file_input_name(side->file->path));
        if (error != NULL)
            *error = side->error;
        return false;
    }
    return true;
}

/* Run a phase for the mask of the row, if it has one. */
static bool run_mask(struct pair *pair, bool (*phase)(struct pair *, int), struct error *error)
{
    struct side *mask = &pair->sides[MASK];
    if (mask->file->path == NULL || phase(pair, MASK))
        return true;
    pair->row->kind = ROW_MASK;
    *error = mask->error;
    error_add_subject(error, mask->file->path);
    return false;
}

/* ---- The picture ---- */

/* Make a thumbnail of IMAGE from SMALL, or shrink it to SMALL first. */
static void make_thumbnail(struct pair *pair, const struct image *image, enum shrink shrink, struct image *small,
                           struct thumbnail *thumbnail)
{
    if (!((small->samples != NULL || image_shrink(image, shrink, small, NULL)) && thumbnail_encode(small, thumbnail)))
        pair->row->thumbnails_lost = true;
}

/* Keep the upper left WIDTH x HEIGHT pixels of IMAGE. */
static void cut_image(struct image *image, int width, int height)
{
    const size_t from = image_row_bytes(image), to = (size_t)width * image_pixel_bytes(image);
    for (int y = 0; y < height; y++)
        memmove(image->samples + (size_t)y * to, image->samples + (size_t)y * from, to);
    image->width = width;
    image->height = height;
}

/* Decode two images of different sizes, and cut them to the part that both have. Returns whether the difference of that
 * part can be drawn. */
static bool cut_sides(struct pair *pair)
{
    const struct compare_settings *settings = pair->worker->settings;
    const struct row_file *p = &pair->row->expected, *q = &pair->row->actual;
    struct image *a = &pair->sides[0].image, *b = &pair->sides[1].image;
    pair->channels = channels_of_both(p->channels, q->channels);
    if ((settings->pictures == NULL && settings->picture == NULL && pair->thumbnails == NULL) || p->bits != q->bits ||
        (p->channels != q->channels && settings->rules.strict_channels) || !reserve_sides(pair, 0, 1, NULL) ||
        !run_both(pair, decode_side, NULL) || !run_both(pair, widen_side, NULL))
        return false;
    const int width = a->width < b->width ? a->width : b->width, height = a->height < b->height ? a->height : b->height;
    cut_image(a, width, height);
    cut_image(b, width, height);
    return true;
}

/* Draw the picture of the difference, for a file and for a thumbnail. */
static bool draw_picture(struct pair *pair, struct error *error)
{
    const struct compare_settings *settings = pair->worker->settings;
    const struct difference *difference = &pair->row->difference;
    const bool other = pair->row->kind == ROW_SHAPE;
    const bool saves = (pair->row->beyond != 0 || other) && (settings->pictures != NULL || settings->picture != NULL) &&
                       (settings->no_new_files == NULL || !atomic_load(settings->no_new_files));
    struct image picture = {0}, small = {0};
    if (!saves && (pair->thumbnails == NULL || (difference->largest == 0 && difference->antialiased == 0 && !other)))
        return true;
    bool done = difference_picture(&pair->sides[0].image, &pair->sides[1].image, pair->antialiased, &picture, error);
    if (done && pair->thumbnails != NULL)
        make_thumbnail(pair, &picture, SHRINK_LARGEST, &small, &pair->thumbnails->difference);
    done = done && (!saves || picture_save(pair->worker, &pair->codec[0], &picture, pair->row, error));
    image_free(&picture);
    image_free(&small);
    return done;
}

/* ---- Thumbnails ---- */

/* Decode the only file of a row, or the readable one. If this fails, the side has no image, and the row stays as it
 * is. */
static void decode_single(struct pair *pair, int i)
{
    struct row_file *file = pair->sides[i].file, seen = *file;
    pair->sides[i].file = &seen;
    struct stat status; /* a pipe may never end */
    if (seen.path != NULL && file_find_input(seen.path, &status) && pair->sides[i].image.samples == NULL)
        (void)(reserve_pair_memory(pair, seen.bytes, NULL) &&
               (pair->sides[i].bytes != NULL || read_side_file(pair, i)) && inspect_side(pair, i) &&
               reserve_sides(pair, i, i, NULL) && decode_side(pair, i));
    pair->sides[i].file = file;
}

/* Make the thumbnail of a side, if its image is decoded. */
static void show_side(struct pair *pair, int i, struct thumbnail *thumbnail)
{
    struct side *side = &pair->sides[i];
    struct metadata metadata = {.max = METADATA_LONG_TEXT_MAX, .page = pair->codec[i].page};
    if (side->image.samples == NULL)
        return;
    make_thumbnail(pair, &side->image, SHRINK_MEAN, &side->small, thumbnail);
    if (!side->info.format->read_metadata(side->bytes, side->size, &metadata, NULL))
        pair->row->thumbnails_lost = true;
    thumbnail->orientation = metadata.orientation;
    metadata_free(&metadata);
}

/* Make the thumbnails of both files, or of the only file. */
static void make_thumbnails(struct pair *pair)
{
    const enum row_kind kind = pair->row->kind;
    if (pair->thumbnails == NULL || kind == ROW_EQUAL)
        return;
    if (kind == ROW_SHAPE && reserve_sides(pair, 0, 1, NULL))
        run_both(pair, decode_side, NULL);
    else if (kind != ROW_SHAPE)
        for (int i = 0; i < 2; i++)
            decode_single(pair, i);
    show_side(pair, 0, &pair->thumbnails->expected);
    show_side(pair, 1, &pair->thumbnails->actual);
    pair->row->thumbnails = pair->thumbnails;
    pair->thumbnails = NULL;
}

/* ---- The whole ---- */

/* Find the rules of the pair: the rules of all pairs, with the mask of this pair's row, if it has one. The mask must
 * have the size of the images. */
static bool find_pair_rules(struct pair *pair, struct compare_rules *rules, struct error *error)
{
    const struct compare_settings *settings = pair->worker->settings;
    const struct image *image = &pair->sides[0].image, *mask = &pair->sides[MASK].image;
    *rules = settings->rules;
    rules->mask = mask->samples != NULL ? mask : rules->mask;
    if (rules->mask == NULL || (rules->mask->width == image->width && rules->mask->height == image->height))
        return true;
    pair->row->kind = ROW_MASK;
    return error_about(error, ERROR_WORK, mask->samples != NULL ? pair->row->mask.path : settings->mask_path,
                       "has %d x %d pixels, and the images to compare %d x %d; give a mask of their size",
                       rules->mask->width, rules->mask->height, image->width, image->height);
}

/* Compare the two images, and set the row's kind. */
static bool compare_sides(struct pair *pair, struct error *error)
{
    struct compare_rules of_pair, *rules = &of_pair;
    struct compare_row *row = pair->row;
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    const struct difference *difference = &row->difference;
    if (!find_pair_rules(pair, rules, error))
        return false;
    const bool ignores =
        rules->area_count > 0 || rules->mask != NULL || rules->ignores_transparent || rules->ignores_antialiasing;
    if (pair->thumbnails != NULL && ignores && !image_shrink(&b->image, SHRINK_MEAN, &b->small, error))
        return false;
    if (!compare_by_rules(&a->image, &b->image, rules, &pair->worker->both, &row->difference, &pair->antialiased,
                          error))
        return false;
    row->allowed = compare_allowed(rules, difference);
    row->metadata_differ = rules->takes_metadata ? metadata_find_differences(&a->metadata, &b->metadata) : 0;
    row->beyond = compare_limits(rules, difference);
    const bool other = row->metadata_differ != 0 || row->expected.orientation != row->actual.orientation;
    const bool tolerates = difference->largest > 0 || difference->hidden > 0 || difference->antialiased > 0;
    row->kind = other || row->beyond != 0                        ? ROW_DIFFERENT
                : tolerates                                      ? ROW_TOLERATED
                : row->expected.channels != row->actual.channels ? ROW_CHANNELS
                                                                 : ROW_EQUAL;
    return true;
}

static bool compare_both_files(struct pair *pair, struct error *error)
{
    struct compare_row *row = pair->row;
    struct side *a = &pair->sides[0], *b = &pair->sides[1];
    if (!reserve_pair_memory(pair, row->expected.bytes + row->actual.bytes + row->mask.bytes, error) ||
        !run_both(pair, read_side_file, error))
        return false;
    row->identical = a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
    row->kind = ROW_EQUAL;
    if (row->identical) /* check only that the first bytes are those of an image */
        return format_find_by_magic(a->bytes, a->size, file_input_name(row->expected.path), error) != NULL;
    if (!run_both(pair, inspect_side, error))
        return false;
    const struct row_file *p = &row->expected, *q = &row->actual;
    row->kind = ROW_SHAPE;
    if (p->width != q->width || p->height != q->height || p->bits != q->bits ||
        (p->channels != q->channels && pair->worker->settings->rules.strict_channels))
        return true;
    pair->channels = channels_of_both(p->channels, q->channels);
    const int last = row->mask.path != NULL ? MASK : 1;
    return run_mask(pair, read_side_file, error) && run_mask(pair, inspect_side, error) &&
           reserve_sides(pair, 0, last, error) && run_both(pair, decode_side, error) &&
           run_both(pair, widen_side, error) && run_mask(pair, decode_side, error) && compare_sides(pair, error);
}

static void compare(struct pair_worker *worker, struct pair *pair, struct compare_row *row)
{
    const struct compare_settings *settings = worker->settings;
    struct error error;
    *pair = (struct pair){.worker = worker,
                          .row = row,
                          .sides = {{.file = &row->expected}, {.file = &row->actual}, {.file = &row->mask}}};
    for (int i = 0; i < SIDES; i++) {
        pair->codec[i] = settings->codec;
        pair->codec[i].pool = i < MASK ? &worker->each[i] : NULL;
    }
    if (settings->thumbnails)
        pair->thumbnails = calloc(1, sizeof *pair->thumbnails);
    row->thumbnails_lost = settings->thumbnails && pair->thumbnails == NULL;
    if (row->kind == ROW_EQUAL && !compare_both_files(pair, &error)) {
        error_add_subject(&error, file_input_name(row->actual.path));
        row->kind = row->kind == ROW_MASK ? ROW_MASK : ROW_UNREADABLE;
        row_set_problem(row, &error);
    } else if ((row->kind == ROW_DIFFERENT || row->kind == ROW_TOLERATED ||
                (row->kind == ROW_SHAPE && cut_sides(pair))) &&
               !draw_picture(pair, &error)) {
        row_set_problem(row, &error);
    }
    for (int i = 0; row->kind == ROW_SHAPE && i < 2; i++)
        image_free(&pair->sides[i].image); /* the image may be cut, but the thumbnail shows the whole image */
    make_thumbnails(pair);
    thumbnails_free(pair->thumbnails); /* if make_thumbnails has not given them to the row */
    for (int i = 0; i < SIDES; i++) {
        image_free(&pair->sides[i].image);
        image_free(&pair->sides[i].small);
        metadata_free(&pair->sides[i].metadata);
        free(pair->sides[i].bytes);
    }
    free(pair->antialiased);
    budget_release(&worker->workers->budget, worker->reserved);
    worker->reserved = 0;
}

void compare_pair(struct pair_worker **kept, struct workers *workers, int threads,
                  const struct compare_settings *settings, struct compare_row *row)
{
    struct pair_worker *worker = *kept != NULL ? *kept : calloc(1, sizeof *worker);
    struct pair *pair = calloc(1, sizeof *pair);
    const double start = clock_milliseconds();
    struct error error;
    if (worker != NULL && *kept == NULL) {
        thread_pool_open(&worker->both, threads);
        for (int i = 0; i < 2; i++)
            thread_pool_open(&worker->each[i], threads >= 4 ? threads / 2 : 1);
        *kept = worker;
    }
    if (worker != NULL && pair != NULL) {
        worker->settings = settings;
        worker->workers = workers;
        compare(worker, pair, row);
    } else {
        error_no_memory(&error, "the comparison of %s", row->name);
        row->kind = ROW_UNREADABLE;
        row_set_problem(row, &error);
    }
    free(pair);
    row->seconds = (clock_milliseconds() - start) / 1000;
}

void compare_worker_free(struct pair_worker *worker)
{
    if (worker == NULL)
        return;
    thread_pool_close(&worker->both);
    for (int i = 0; i < 2; i++)
        thread_pool_close(&worker->each[i]);
    free(worker);
}
