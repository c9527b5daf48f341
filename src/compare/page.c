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
#include <unistd.h>

struct page {
    FILE *file;
    const struct page_request *request;
    char *folder; /* of the page, by absolute_path; NULL: links are absolute */
    bool failed;  /* there was not enough memory */
};

/* ---- Links ---- */

/* PATH from the root on, without ".", ".." and double slashes; the root is "". A browser removes ".." in this way, too:
 * by the text alone. Release it with free. NULL if that is another file, because of a symbolic link, or if there is not
 * enough memory. */
static char *absolute_path(struct page *page, const char *path)
{
    struct stat before, after;
    char *start = path[0] == '/' ? strdup("") : getcwd(NULL, 0), *whole = NULL;
    if (start == NULL || asprintf(&whole, "%s/%s", start, path) < 0)
        whole = NULL;
    free(start);
    if (whole == NULL) {
        page->failed = true;
        return NULL;
    }
    char *end = whole; /* of the result; it never overtakes `at`, because each name follows a slash */
    for (const char *at = whole; *at != '\0';) {
        at += strspn(at, "/");
        const size_t length = strcspn(at, "/");
        if (length == 2 && memcmp(at, "..", 2) == 0) {
            do
                end -= end > whole;
            while (end > whole && *end != '/');
        } else if (length > 0 && (length > 1 || *at != '.')) {
            *end++ = '/';
            memmove(end, at, length);
            end += length;
        }
        at += length;
    }
    *end = '\0';
    if (stat(path, &before) == 0 && stat(whole[0] != '\0' ? whole : "/", &after) == 0 && file_is_one(&before, &after))
        return whole;
    free(whole);
    return NULL;
}

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

/* Print the attribute that links to the file at PATH, if there is one. */
static void print_href(struct page *page, const char *path)
{
    struct stat status;
    if (file_is_standard(path) || !file_find_input(path, &status))
        return;
    char *whole = page->folder != NULL ? absolute_path(page, path) : NULL;
    char *real = whole == NULL ? realpath(path, NULL) : NULL;
    if (whole != NULL) {
        const char *folder = page->folder;
        size_t common = 0, i = 0; /* the place of the slash after the last common folder */
        for (; folder[i] != '\0' && folder[i] == whole[i]; i++)
            common = folder[i] == '/' ? i : common;
        if (folder[i] == '\0' && whole[i] == '/')
            common = i;
        fputs(" href=\"", page->file);
        for (const char *at = folder + common; *at != '\0'; at++)
            fputs(*at == '/' ? "../" : "", page->file);
        print_url(page->file, whole + common + 1);
        fputc('"', page->file);
    } else if (real != NULL) {
        fputs(" href=\"file://", page->file);
        print_url(page->file, real);
        fputc('"', page->file);
    } else {
        page->failed = true; /* or the file went just now */
    }
    free(whole);
    free(real);
}

/* ---- Rows ---- */

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

/* Print the link to one of a row's pictures. PATH may be NULL; so may THUMBNAIL. SIZED has the size of the picture. */
static void print_picture(struct page *page, const char *side, const char *path, const struct row_file *sized,
                          const struct thumbnail *thumbnail)
{
    FILE *file = page->file;
    fprintf(file, "<a class=\"%s\" title=\"%s", side, side);
    if (path != NULL) {
        fputs(": ", file);
        text_print_xml(file, file_input_name(path));
    }
    fputc('"', file);
    if (path != NULL)
        print_href(page, path);
    if (sized->width > 0)
        fprintf(file, " data-size=\"%d %d\"", sized->width, sized->height);
    if (thumbnail != NULL && thumbnail->orientation > 1)
        fprintf(file, " data-turn=\"%d\"", thumbnail->orientation);
    if (thumbnail == NULL || thumbnail->format == NULL) {
        fprintf(file, ">%s</a>", side);
        return;
    }
    fprintf(file, "><img alt=\"%s\" width=\"%d\" height=\"%d\" src=\"data:image/", side, thumbnail->width,
            thumbnail->height);
    for (const char *at = thumbnail->format->name; *at != '\0'; at++)
        fputc(tolower(*at), file);
    fputs(";base64,", file);
    print_base64(file, thumbnail->bytes, thumbnail->size);
    fputs("\"></a>", file);
}

static void print_row(struct page *page, const struct compare_row *row)
{
    const struct difference *d = &row->difference;
    const struct thumbnails *thumbnails = row->thumbnails;
    const struct row_file *expected = &row->expected, *actual = &row->actual;
    FILE *file = page->file;
    fprintf(file, "<li data-kind=\"%s\"", row_kind_name(row->kind));
    if (d->same_shape && d->pixels > 0)
        fprintf(file, " data-box=\"%d %d %d %d\"", d->box.x, d->box.y, d->box.width, d->box.height);
    if (d->same_shape && d->largest > 0) /* what makes the largest difference white */
        fprintf(file, " data-gain=\"%.6g\"", (expected->bits == 8 ? 255. : 65535.) / d->largest);
    fprintf(file, "><h2><span class=\"kind\">%s</span> <span class=\"name\">", row_kind_name(row->kind));
    text_print_xml(file, row->name);
    fputs("</span></h2>\n<p>", file);
    row_describe(file, row, page->request->rules, text_print_xml);
    if (row->problem != NULL && row->kind != ROW_UNREADABLE) {
        fputs("</p>\n<p>", file);
        text_print_xml(file, row->problem);
    }
    fputs("</p>\n<div>", file);
    if (expected->path != NULL)
        print_picture(page, "expected", expected->path, expected, thumbnails != NULL ? &thumbnails->expected : NULL);
    if (actual->path != NULL)
        print_picture(page, "actual", actual->path, actual, thumbnails != NULL ? &thumbnails->actual : NULL);
    if (row->picture != NULL || (d->same_shape && (d->largest > 0 || d->antialiased > 0)))
        print_picture(page, "difference", row->picture, expected, thumbnails != NULL ? &thumbnails->difference : NULL);
    fputs("</div></li>\n", file);
    page->failed = page->failed || row->thumbnails_lost;
}

/* ---- The summary and the template ---- */

static void print_rules(FILE *file, const struct compare_rules *rules)
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
    if (rules->mask != NULL)
        fputs(" The black pixels of a mask are ignored.", file);
    if (rules->ignores_transparent)
        fputs(" Pixels that are transparent in both images are ignored.", file);
    if (rules->ignores_antialiasing)
        fputs(" Antialiased pixels, which are yellow, are ignored.", file);
    if (rules->takes_metadata)
        fputs(" Profile and orientation must be equal.", file);
}

static void print_summary(const struct page *page)
{
    const struct page_request *request = page->request;
    const size_t count = request->rows->count;
    fputs("<h1>Expected: ", page->file);
    text_print_xml(page->file, file_input_name(request->expected));
    fputs("; actual: ", page->file);
    text_print_xml(page->file, file_input_name(request->actual));
    fprintf(page->file, "</h1>\n<p>%zu pair%s, of which %zu %s equal and not listed. ", count, count == 1 ? "" : "s",
            request->rows->counts[ROW_EQUAL], request->rows->counts[ROW_EQUAL] == 1 ? "is" : "are");
    print_rules(page->file, request->rules);
    fputs("</p>\n", page->file);
}

static void print_filter(FILE *file, const char *kind, size_t count)
{
    fprintf(file, "<button data-kind=\"%s\"%s><span class=\"kind\">%s</span> %zu</button>\n", kind,
            count == 0 ? " disabled" : "", kind, count);
}

/* Print the line of the template, or the text that replaces it. */
static void print_line(struct page *page, const char *line)
{
    const struct compare_rows *rows = page->request->rows;
    if (strcmp(line, "<!-- summary -->\n") == 0) {
        print_summary(page);
    } else if (strcmp(line, "<!-- filters -->\n") == 0) {
        print_filter(page->file, "all", rows->count - rows->counts[ROW_EQUAL]);
        for (enum row_kind kind = ROW_DIFFERENT; kind < ROW_KINDS; kind++)
            print_filter(page->file, row_kind_name(kind), rows->counts[kind]);
        print_filter(page->file, row_kind_name(ROW_TOLERATED), rows->counts[ROW_TOLERATED]);
    } else if (strcmp(line, "<!-- rows -->\n") == 0) {
        for (size_t i = 0; i < rows->count; i++)
            if (rows->rows[i].kind != ROW_EQUAL)
                print_row(page, &rows->rows[i]);
    } else {
        fputs(line, page->file);
    }
}

bool page_write(const char *path, const struct page_request *request, struct error *error)
{
    struct text_buffer text = {0};
    struct page page = {.file = text_open(&text), .request = request};
    char *folder = file_is_standard(path) ? strdup(".") : file_folder(path);
    page.failed = page.file == NULL || folder == NULL;
    if (folder != NULL)
        page.folder = absolute_path(&page, folder);
    for (const char *const *line = page_template; page.file != NULL && *line != NULL; line++)
        print_line(&page, *line);
    free(folder);
    free(page.folder);
    bool done = page.file != NULL && text_close(page.file, &text) && !page.failed;
    done = done ? file_write(path, (const uint8_t *)text.bytes, text.size, NULL, error)
                : error_no_memory(error, "the file of --html");
    free(text.bytes);
    return done;
}
