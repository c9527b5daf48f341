/* SPDX-License-Identifier: MIT
 *
 * Rows as a page of HTML. */
#include "compare/report.h"

#include "base/file.h"
#include "base/text.h"
#include "compare/compare_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct page {
    FILE *file;
    const struct report_request *request;
    struct page_pictures pictures;
    bool failed; /* there was not enough memory */
    struct error *error;
};

/* ---- Rows ---- */

/* Print a path as a part of a URL: RFC 3986's unreserved characters and slashes stay. A colon does not, so that no name
 * begins a URL of another scheme. */
static void print_url(FILE *file, const char *path)
{
    for (const char *at = path; *at != '\0'; at++)
        if (isascii(*at) && (isalnum(*at) || strchr("-._~/", *at) != NULL))
            fputc(*at, file);
        else
            fprintf(file, "%%%02X", (unsigned)(unsigned char)*at);
}

/* RFC 4648. */
static void print_base64(FILE *file, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        const char text[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                              left > 2 ? digits[group & 63] : '='};
        fwrite(text, 1, sizeof text, file);
    }
}

static void print_data(FILE *file, const struct format *format, const uint8_t *bytes, size_t size)
{
    fputs("data:image/", file);
    for (const char *at = format->name; *at != '\0'; at++)
        fputc(tolower(*at), file);
    fputs(";base64,", file);
    print_base64(file, bytes, size);
}

/* Print the attributes that lead to a picture, if the page can bring it: a file beside the page, or the bytes. Browsers
 * do not open the latter, but store them under a name. */
static void print_href(struct page *page, const struct compare_row *row, enum page_side side)
{
    struct page_picture picture;
    if (!page_picture_take(&page->pictures, row, side, &picture, page->error)) {
        page->failed = true;
        return;
    }
    if (picture.link != NULL) {
        fputs(" href=\"", page->file);
        print_url(page->file, picture.link);
        fputc('"', page->file);
    } else if (picture.bytes != NULL) {
        fprintf(page->file, " download=\"%s.%s\" href=\"", page_side_name(side), picture.format->suffixes[0]);
        print_data(page->file, picture.format, picture.bytes, picture.size);
        fputc('"', page->file);
    }
    free(picture.link);
    free(picture.bytes);
}

/* Print the link to one of a row's pictures. SIZED has its size. */
static void print_picture(struct page *page, const struct compare_row *row, enum page_side side,
                          const struct row_file *sized)
{
    FILE *file = page->file;
    const char *name = page_side_name(side), *path = page_picture_path(row, side);
    const struct thumbnail *thumbnail = page_thumbnail(row, side);
    fprintf(file, "<a class=\"%s\" title=\"%s", name, name);
    if (path != NULL) {
        fputs(": ", file);
        text_print_xml(file, file_input_name(path));
    }
    fputc('"', file);
    print_href(page, row, side);
    if (sized->width > 0)
        fprintf(file, " data-size=\"%d %d\"", sized->width, sized->height);
    if (thumbnail == NULL) {
        fprintf(file, ">%s</a>", name);
        return;
    }
    if (thumbnail->orientation > 1)
        fprintf(file, " data-turn=\"%d\"", thumbnail->orientation);
    fprintf(file, "><img alt=\"%s\" width=\"%d\" height=\"%d\" src=\"", name, thumbnail->width, thumbnail->height);
    print_data(file, thumbnail->format, thumbnail->bytes, thumbnail->size);
    fputs("\"></a>", file);
}

/* Print TEXT with commas in its whole numbers. It contains no names. */
static void print_thousands(FILE *file, const char *text)
{
    for (bool decimals = false; *text != '\0';) {
        const size_t digits = decimals ? 0 : strspn(text, "0123456789");
        for (size_t i = 0; i < digits; i++)
            fprintf(file, "%s%c", i > 0 && (digits - i) % 3 == 0 ? "," : "", text[i]);
        text += digits;
        decimals = (digits > 0 && *text == '.') || (decimals && isdigit((unsigned char)*text));
        if (*text != '\0')
            fputc(*text++, file);
    }
}

/* Print the line of a row: first its two main numbers, then the whole sentence. */
static void print_row_words(struct page *page, const struct compare_row *row)
{
    const struct difference *d = &row->difference;
    FILE *file = page->file;
    if (row->kind >= ROW_UNREADABLE) { /* a problem contains names, which must not get commas */
        row_describe(file, row, page->request->rules, text_print_xml);
        return;
    }
    if (d->same_shape && d->pixels > 0)
        fprintf(file, "<b>%.4g%%</b> of the pixels differ, ", 100 * (double)d->pixels / (double)d->compared);
    if (d->same_shape && d->largest > 0)
        fprintf(file, "%s by at most <b>%d</b> of %d</p>\n<p>", d->pixels > 0 ? "" : "The pixels differ", d->largest,
                row->expected.bits == 8 ? 255 : 65535);
    struct text_buffer text;
    FILE *words = text_open(&text);
    if (words != NULL)
        row_describe(words, row, page->request->rules, text_print_xml);
    if (words != NULL && text_close(words, &text)) {
        print_thousands(file, text.bytes);
        free(text.bytes);
    } else {
        page->failed = true;
    }
}

static void print_page_row(struct page *page, const struct compare_row *row)
{
    const struct difference *d = &row->difference;
    const struct row_file *expected = &row->expected, *actual = &row->actual;
    FILE *file = page->file;
    fprintf(file, "<li data-kind=\"%s\"", row_kind_name(row->kind));
    if (d->same_shape && d->pixels > 0)
        fprintf(file, " data-box=\"%d %d %d %d\"", d->box.x, d->box.y, d->box.width, d->box.height);
    if (d->same_shape && d->largest > 0) /* the factor that makes the largest difference white */
        fprintf(file, " data-gain=\"%.6g\"", (expected->bits == 8 ? 255. : 65535.) / d->largest);
    fprintf(file, "><h2><span class=\"kind\">%s</span> <span class=\"name\">", row_kind_name(row->kind));
    text_print_xml(file, row->name);
    fputs("</span></h2>\n<p>", file);
    print_row_words(page, row);
    if (row->problem != NULL && row->kind < ROW_UNREADABLE) {
        fputs("</p>\n<p>", file);
        text_print_xml(file, row->problem);
    }
    fputs("</p>\n<div>", file);
    if (expected->path != NULL)
        print_picture(page, row, PAGE_EXPECTED, expected);
    if (actual->path != NULL)
        print_picture(page, row, PAGE_ACTUAL, actual);
    if (row->picture != NULL || (d->same_shape && (d->largest > 0 || d->antialiased > 0)))
        print_picture(page, row, PAGE_DIFFERENCE, expected);
    fputs("</div></li>\n", file);
    page->failed = page->failed || row->thumbnails_lost;
}

/* ---- The summary and the template ---- */

static void print_rules(FILE *file, const struct compare_rules *rules, const struct compare_rows *rows)
{
    if (rules->any_pixels)
        fputs("Samples may differ.", file);
    else if (rules->tolerance > 0)
        fprintf(file, "Samples may differ by up to %d.", rules->tolerance);
    else if (rules->yiq == 0)
        fputs("Samples must be equal.", file);
    if (rules->yiq > 0)
        fprintf(file, " Colours may differ by up to %.9g in YIQ.", (double)rules->yiq / COMPARE_MILLION);
    rules_print_limits(file, rules);
    if (rules->share > 0)
        fprintf(file, " %.9g%% of the pixels may differ by more.", rules->share / (COMPARE_WHOLE / 100.));
    else if (rules->different > 0)
        fprintf(file, " %llu pixels may differ by more.", (unsigned long long)rules->different);
    if (rules->area_count > 0)
        fprintf(file, " %zu rectangle%s ignored.", rules->area_count, rules->area_count == 1 ? " is" : "s are");
    bool has_mask = rules->mask != NULL;
    for (size_t i = 0; i < rows->count; i++)
        has_mask = has_mask || rows->rows[i].mask.path != NULL;
    if (has_mask)
        fputs(" The black pixels of a mask are ignored.", file);
    if (rules->ignores_transparent)
        fputs(" Pixels that are transparent in both images are ignored.", file);
    if (rules->ignores_antialiasing)
        fputs(" Antialiased pixels, which are yellow, are ignored.", file);
    if (rules->strict_channels)
        fputs(" Channels must be equal.", file);
    if (rules->takes_metadata)
        fputs(" Metadata must be equal.", file);
}

static void print_page_summary(const struct page *page)
{
    const struct report_request *request = page->request;
    fputs("<h1>", page->file);
    rows_print_verdict(page->file, page->request->rows);
    fputs("</h1>\n<p>Expected: ", page->file);
    text_print_xml(page->file, file_input_name(request->expected));
    fputs("; actual: ", page->file);
    text_print_xml(page->file, file_input_name(request->actual));
    fprintf(page->file, ". %zu %s equal and not listed. ", request->rows->counts[ROW_EQUAL],
            request->rows->counts[ROW_EQUAL] == 1 ? "is" : "are");
    print_rules(page->file, request->rules, request->rows);
    if (page->pictures.leaves_some)
        fputs(
            " The page holds 16 MiB of pictures; the others are thumbnails. A page in a file that is in neither folder "
            "brings all.",
            page->file);
    fputs("</p>\n", page->file);
}

static void print_filter(FILE *file, const char *kind, size_t count)
{
    fprintf(file, "<button data-kind=\"%s\"%s><span class=\"kind\">%s</span> %zu</button>\n", kind,
            count == 0 ? " disabled" : "", kind, count);
}

/* Print the line of the template, or the text that replaces it. */
static void print_template_line(struct page *page, const char *line)
{
    const struct compare_rows *rows = page->request->rows;
    if (strcmp(line, "<!-- title -->\n") == 0) {
        fputs("<title>", page->file);
        rows_print_verdict(page->file, page->request->rows);
        fputs("</title>\n", page->file);
    } else if (strcmp(line, "<!-- summary -->\n") == 0) {
        print_page_summary(page);
    } else if (strcmp(line, "<!-- filters -->\n") == 0) {
        print_filter(page->file, "all", rows->count - rows->counts[ROW_EQUAL]);
        for (enum row_kind kind = ROW_DIFFERENT; kind < ROW_KINDS - (rows->counts[ROW_MASK] == 0); kind++)
            print_filter(page->file, row_kind_name(kind), rows->counts[kind]);
        for (enum row_kind kind = ROW_EQUAL + 1; kind < ROW_DIFFERENT; kind++)
            print_filter(page->file, row_kind_name(kind), rows->counts[kind]);
    } else if (strcmp(line, "<!-- rows -->\n") == 0) {
        for (size_t i = 0; i < rows->count; i++)
            if (rows->rows[i].kind != ROW_EQUAL)
                print_page_row(page, &rows->rows[i]);
    } else {
        fputs(line, page->file);
    }
}

bool page_print(FILE *file, const char *path, const struct report_request *request, struct error *error)
{
    struct page page = {.file = file, .request = request, .error = error};
    bool done = page_pictures_open(&page.pictures, path, request, error);
    for (const char *const *line = page_template; done && *line != NULL; line++) {
        print_template_line(&page, *line);
        done = !page.failed;
    }
    free(page.pictures.folder);
    return done;
}
