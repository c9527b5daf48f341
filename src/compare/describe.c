/* SPDX-License-Identifier: MIT
 *
 * Rows as text and JSON. */
#include "compare/report.h"

#include "base/file.h"
#include "base/text.h"
#include "metadata/metadata.h"

#include <math.h>
#include <stdlib.h>

/* ---- Text ---- */

static void describe_shapes(FILE *file, const struct row_file *a, const struct row_file *b)
{
    if (a->width == b->width && a->height == b->height && a->channels == b->channels)
        fprintf(file, "depths differ: expected %d bits per sample, actual %d; give --depth 8 to compare them reduced",
                a->bits, b->bits);
    else
        fprintf(file, "shapes differ: expected %d x %d with %d channel%s, actual %d x %d with %d channel%s", a->width,
                a->height, a->channels, text_plural(a->channels), b->width, b->height, b->channels,
                text_plural(b->channels));
}

/* Print the size of the differences: the numbers that tolerated and different pixels share. */
static void describe_size(FILE *file, const struct compare_row *row)
{
    const struct difference *d = &row->difference;
    fprintf(file, "largest difference %d", d->largest);
    for (int c = 0; d->channels > 1 && c < d->channels; c++)
        fprintf(file, "%s%d%s", c == 0 ? " (" : " ", d->largest_of[c], c + 1 == d->channels ? ")" : "");
    fprintf(file, ", PSNR %.2f dB", d->psnr);
    if (!isnan(d->ssim.mean))
        fprintf(file, ", SSIM %.6f, local SSIM %.6f at x %d y %d", d->ssim.mean, d->ssim.lowest, d->ssim.x, d->ssim.y);
}

/* The names of the limits, in text and in JSON. */
static const char *const limit_names[LIMITS][2] = {
    [LIMIT_PIXELS] = {"pixels", "pixels"},
    [LIMIT_PSNR] = {"PSNR", "psnr"},
    [LIMIT_SSIM] = {"SSIM", "ssim"},
    [LIMIT_LOCAL_SSIM] = {"local SSIM", "local_ssim"},
};

void rules_print_limits(FILE *file, const struct compare_rules *rules)
{
    for (enum limit limit = LIMIT_PSNR; limit < LIMITS; limit++)
        if (rules->lowest[limit] > 0)
            fprintf(file, " The %s must be at least %.9g.", limit_names[limit][0],
                    (double)rules->lowest[limit] / COMPARE_MILLION);
}

/* Print the limits that the images violate, and by how much. describe_pixels prints LIMIT_PIXELS. */
static void describe_limits(FILE *file, const struct compare_row *row, const struct compare_rules *rules)
{
    for (enum limit limit = LIMIT_PSNR; limit < LIMITS; limit++) {
        const double number = compare_number(&row->difference, limit),
                     lowest = (double)rules->lowest[limit] / COMPARE_MILLION;
        if ((row->beyond >> limit & 1) == 0)
            continue;
        if (isnan(number))
            fprintf(file, "; images smaller than %d x %d have no %s for the limit %.9g", SSIM_WINDOW, SSIM_WINDOW,
                    limit_names[limit][0], lowest);
        else
            fprintf(file, "; the %s is %.3g below its limit %.9g", limit_names[limit][0], lowest - number, lowest);
    }
}

/* The text before the next part of a row's sentence. PRINTED is 0 if no part is printed yet. */
static const char *joint_after(uint64_t printed)
{
    return printed > 0 ? "; " : "";
}

static void describe_metadata(FILE *file, const struct compare_row *row)
{
    const struct difference *d = &row->difference;
    const char *joint = joint_after(d->pixels + d->tolerated + d->antialiased + d->hidden);
    if (row->metadata_differ & 1 << METADATA_ICC) {
        fprintf(file, "%sthe profiles differ", joint);
        joint = "; ";
    }
    for (enum metadata_part part = METADATA_ICC + 1; part < METADATA_PARTS; part++)
        if (row->metadata_differ & 1u << part) {
            fprintf(file, "%sthe %s differs", joint, metadata_part_name(part));
            joint = "; ";
        }
    if (row->expected.orientation != row->actual.orientation)
        fprintf(file, "%sthe orientation is %d, not %d", joint, row->actual.orientation, row->expected.orientation);
}

/* Print the channels of two compared files, if they differ. */
static void describe_channels(FILE *file, const char *joint, const struct compare_row *row)
{
    if (row->difference.same_shape && row->expected.channels != row->actual.channels)
        fprintf(file, "%sexpected %d channel%s, actual %d", joint, row->expected.channels,
                text_plural(row->expected.channels), row->actual.channels);
}

/* Print the tolerances that are set, with JOINT between them. */
static void print_tolerance(FILE *file, const struct compare_rules *rules, const char *joint)
{
    if (rules->tolerance > 0)
        fprintf(file, " %d%s", rules->tolerance, rules->yiq > 0 ? joint : "");
    if (rules->yiq > 0)
        fprintf(file, " %.9g in YIQ", (double)rules->yiq / COMPARE_MILLION);
}

static void describe_pixels(FILE *file, const struct compare_row *row, const struct compare_rules *rules)
{
    const struct difference *d = &row->difference;
    if (d->pixels > 0) {
        fprintf(file, "%llu of %llu pixels (%.4g%%) differ", (unsigned long long)d->pixels,
                (unsigned long long)d->compared, 100 * (double)d->pixels / (double)d->compared);
        if (rules->tolerance > 0 || rules->yiq > 0)
            fputs(" by more than", file);
        print_tolerance(file, rules, " or");
        if (!rules->any_pixels && (row->allowed > 0 || rules_limit_numbers(rules)))
            fprintf(file, " where %llu may", (unsigned long long)row->allowed);
        fprintf(file, ", first at x %d y %d channel %d, ", d->first_x, d->first_y, d->first_channel);
        describe_size(file, row);
        fprintf(file, ", box %d x %d at x %d y %d", d->box.width, d->box.height, d->box.x, d->box.y);
    }
    if (d->tolerated > 0) {
        fprintf(file, "%s%llu of %llu pixels differ by at most", joint_after(d->pixels),
                (unsigned long long)d->tolerated, (unsigned long long)d->compared);
        print_tolerance(file, rules, " and");
        if (d->pixels == 0) {
            fputs(", ", file);
            describe_size(file, row);
        }
    }
    if (d->antialiased > 0)
        fprintf(file, "%s%llu of %llu pixels differ by antialiasing", joint_after(d->pixels + d->tolerated),
                (unsigned long long)d->antialiased, (unsigned long long)d->compared);
    if (d->hidden > 0)
        fprintf(file, "%s%llu of %llu ignored pixels differ", joint_after(d->pixels + d->tolerated + d->antialiased),
                (unsigned long long)d->hidden, (unsigned long long)d->ignored);
}

/* Only the sentence of a problem contains characters that PRINT escapes. */
void row_describe(FILE *file, const struct compare_row *row, const struct compare_rules *rules,
                  void (*print)(FILE *file, const char *text))
{
    switch (row->kind) {
    case ROW_EQUAL:
        fputs("equal", file);
        break;
    case ROW_CHANNELS:
        describe_channels(file, "equal in other channels: ", row);
        break;
    case ROW_TOLERATED:
        fputs("equal within the tolerance: ", file);
        describe_pixels(file, row, rules);
        describe_channels(file, "; ", row);
        break;
    case ROW_DIFFERENT:
        describe_pixels(file, row, rules);
        describe_limits(file, row, rules);
        describe_metadata(file, row);
        describe_channels(file, "; ", row);
        break;
    case ROW_SHAPE:
        describe_shapes(file, &row->expected, &row->actual);
        break;
    case ROW_MISSING:
        fputs("is expected, but missing", file);
        break;
    case ROW_NEW:
        fputs("exists, but is not expected", file);
        break;
    case ROW_UNREADABLE:
    case ROW_MASK:
        print(file, row->problem != NULL ? row->problem : "not enough memory for the reason");
        break;
    case ROW_KINDS:
        break;
    }
}

/* ---- All rows ---- */

size_t rows_count_looks(const struct compare_rows *rows)
{
    return rows->count - rows->counts[ROW_EQUAL] - rows->counts[ROW_CHANNELS] - rows->counts[ROW_TOLERATED];
}

void rows_print_verdict(FILE *file, const struct compare_rows *rows)
{
    const size_t looks = rows_count_looks(rows);
    if (looks > 0)
        fprintf(file, "%zu of %zu need%s a look", looks, rows->count, looks == 1 ? "s" : "");
    else if (rows->no_work)
        fputs("nothing was compared", file);
    else
        fprintf(file, "none of %zu needs a look", rows->count);
}

void rows_print_counts(FILE *file, const struct compare_rows *rows)
{
    fprintf(file, "%zu pair%s: %zu equal", rows->count, rows->count == 1 ? "" : "s", rows->counts[ROW_EQUAL]);
    for (enum row_kind kind = ROW_EQUAL + 1; kind < ROW_KINDS; kind++)
        if (rows->counts[kind] > 0)
            fprintf(file, ", %zu %s", rows->counts[kind],
                    kind == ROW_CHANNELS ? "in other channels"
                    : kind == ROW_SHAPE  ? "of other shapes"
                    : kind == ROW_MASK   ? "without a fitting mask"
                                         : row_kind_name(kind));
}

bool row_fails(const struct compare_row *row, bool new_fails)
{
    return row->kind > ROW_TOLERATED && (row->kind != ROW_NEW || new_fails);
}

int row_status(const struct compare_row *row, bool new_fails)
{
    return row->problem != NULL && row->may_retry ? STATUS_RETRY : row_fails(row, new_fails) ? STATUS_FAILED : 0;
}

/* ---- JSON ---- */

static void print_shape(FILE *file, const char *name, const struct row_file *side)
{
    if (side->width > 0)
        fprintf(file, ",\"%s\":{\"width\":%d,\"height\":%d,\"channels\":%d,\"bits\":%d}", name, side->width,
                side->height, side->channels, side->bits);
}

static void print_number(FILE *file, const char *name, int digits, double number)
{
    if (isfinite(number))
        fprintf(file, ",\"%s\":%.*f", name, digits, number);
    else
        fprintf(file, ",\"%s\":null", name);
}

static void print_numbers(FILE *file, const struct compare_row *row, const struct compare_rules *rules)
{
    const struct difference *d = &row->difference;
    fprintf(file, ",\"tolerance\":%d,\"allowed\":%llu,\"compared\":%llu,\"ignored\":%llu,\"ignored_different\":%llu",
            rules->tolerance, (unsigned long long)row->allowed, (unsigned long long)d->compared,
            (unsigned long long)d->ignored, (unsigned long long)d->hidden);
    if (rules->yiq > 0)
        print_number(file, "tolerance_yiq", 6, (double)rules->yiq / COMPARE_MILLION);
    fprintf(file, ",\"different\":%llu,\"tolerated\":%llu,\"antialiased\":%llu", (unsigned long long)d->pixels,
            (unsigned long long)d->tolerated, (unsigned long long)d->antialiased);
    print_number(file, "share", 9, d->compared > 0 ? (double)d->pixels / (double)d->compared : 0);
    if (d->pixels > 0)
        fprintf(file,
                ",\"first\":{\"x\":%d,\"y\":%d,\"channel\":%d},\"box\":{\"x\":%d,\"y\":%d,\"width\":%d,\"height\":%d}",
                d->first_x, d->first_y, d->first_channel, d->box.x, d->box.y, d->box.width, d->box.height);
    fprintf(file, ",\"largest\":%d,\"largest_of_channels\":[", d->largest);
    for (int c = 0; c < d->channels; c++)
        fprintf(file, "%s%d", c > 0 ? "," : "", d->largest_of[c]);
    fputc(']', file);
    print_number(file, "psnr", 4, d->psnr);
    print_number(file, "ssim", 6, d->largest > 0 ? d->ssim.mean : 1);
    print_number(file, "local_ssim", 6, d->largest > 0 ? d->ssim.lowest : 1);
    if (!isnan(d->ssim.lowest))
        fprintf(file, ",\"local_ssim_at\":{\"x\":%d,\"y\":%d}", d->ssim.x, d->ssim.y);
    fputs(",\"beyond\":[", file);
    for (unsigned limit = 0, printed = 0; limit < LIMITS; limit++)
        if ((row->beyond >> limit & 1) != 0)
            fprintf(file, "%s\"%s\"", printed++ > 0 ? "," : "", limit_names[limit][1]);
    fputc(']', file);
}

void row_print_json(FILE *file, const struct compare_row *row, const struct compare_rules *rules)
{
    if (row->id != NULL)
        fprintf(file, "{\"id\":%s,\"status\":\"%s\"", row->id, row_kind_name(row->kind));
    else
        fprintf(file, "{\"status\":\"%s\"", row_kind_name(row->kind));
    text_print_json_member(file, "name", row->name);
    text_print_json_member(file, "expected", row->expected.path);
    text_print_json_member(file, "actual", row->actual.path);
    if (row->kind == ROW_EQUAL)
        fprintf(file, ",\"same_bytes\":%s", row->identical ? "true" : "false");
    print_shape(file, "expected_shape", &row->expected);
    print_shape(file, "actual_shape", &row->actual);
    if (row->difference.same_shape)
        print_numbers(file, row, rules);
    if (rules->takes_metadata && row->difference.same_shape) {
        const char *separator = "";
        fprintf(file,
                ",\"profiles_differ\":%s,\"expected_orientation\":%d,\"actual_orientation\":%d,\"metadata_differ\":[",
                row->metadata_differ & 1 << METADATA_ICC ? "true" : "false", row->expected.orientation,
                row->actual.orientation);
        for (enum metadata_part part = 0; part < METADATA_PARTS; part++)
            if (row->metadata_differ & 1u << part) {
                fprintf(file, "%s\"%s\"", separator, metadata_part_name(part));
                separator = ",";
            }
        fputc(']', file);
    }
    if (row->picture != NULL)
        text_print_json_member(file, "picture", row->picture);
    if (row->problem != NULL) {
        text_print_json_member(file, "error", row->problem);
        fprintf(file, ",\"retry\":%s", row->may_retry ? "true" : "false");
    }
    fputs("}\n", file);
}

/* ---- Files ---- */

bool rows_write(const char *path, report_print *print, const struct report_request *request, struct error *error)
{
    struct text_buffer text = {0};
    FILE *file = text_open(&text);
    error_no_memory(error, "a report"); /* unless another error follows */
    bool done = file != NULL && print(file, path, request, error);
    done = file != NULL && text_close(file, &text) && done;
    done = done && file_write(path, (const uint8_t *)text.bytes, text.size, NULL, error);
    free(text.bytes);
    return done;
}
