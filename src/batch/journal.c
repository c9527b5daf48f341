/* SPDX-License-Identifier: MIT
 *
 * Read the lines that report.c writes. */
#include "batch/journal.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The beginning of each line. In a JSON string, quotation marks have a backslash before them, so no name has this. */
static const char beginning[] = "{\"status\":\"";

/* Read the line of a report at TEXT, after its beginning. Returns false if it is damaged or of another kind. */
static bool read_entry(struct journal *journal, const char *text, const char *recipe, bool *has_memory)
{
    static const char *const words[] = {"begun", "done", "skipped", "failed"};
    char word[8], found[RECIPE_TEXT];
    struct journal_entry entry;
    int end = 0;
    bool is_known = false;
    if (sscanf(text, "%7[a-z]\"%n", word, &end) != 1 || end == 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_known = is_known || strcmp(word, words[i]) == 0;
    text += end;
    if (!is_known || strncmp(text, ",\"input\":", 9) == 0)
        return is_known;
    end = 0;
    if (sscanf(text, ",\"recipe\":\"%16[0-9a-f]\",\"sha256\":\"%64[0-9a-f]\",\"output_bytes\":%zu,%n", found,
               entry.hash, &entry.size, &end) != 3 ||
        end == 0 || strlen(found) != RECIPE_TEXT - 1 || strlen(entry.hash) != SHA256_DIGEST_STRING_LENGTH - 1)
        return false;
    if (strcmp(found, recipe) != 0)
        return true;
    struct journal_entry *larger = array_grow(journal->entries, journal->count, sizeof *larger);
    *has_memory = larger != NULL;
    if (larger != NULL) {
        journal->entries = larger;
        larger[journal->count++] = entry;
    }
    return true;
}

/* Read a line of LENGTH bytes, without its line end. A line that was cut off may be followed by a whole one. */
static bool read_journal_line(struct journal *journal, const char *line, size_t length, const char *recipe,
                              bool *has_memory)
{
    const size_t head = sizeof beginning - 1;
    if (strlen(line) != length || strncmp(line, beginning, length < head ? length : head) != 0)
        return false;
    for (const char *at = strstr(line, beginning), *next; at != NULL; at = next) {
        next = strstr(at + head, beginning);
        const bool is_whole = next == NULL && line[length - 1] == '}';
        if (!read_entry(journal, at + head, recipe, has_memory) && is_whole)
            return false;
    }
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    const struct journal_entry *p = a, *q = b;
    return p->size != q->size ? (p->size < q->size ? -1 : 1) : strcmp(p->hash, q->hash);
}

static int compare_sizes(const void *a, const void *b)
{
    const struct journal_entry *p = a, *q = b;
    return (p->size > q->size) - (p->size < q->size);
}

bool journal_read(const char *path, const char *recipe, struct journal *journal, struct error *error)
{
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t length;
    bool done = true, has_memory = true;
    *journal = (struct journal){0};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ||
               error_about(error, error_of_errno(errno, ERROR_WORK, ERROR_READ), path,
                           "cannot be read: %s; --in-place needs the report to know what is done", strerror(errno));
    while (done && has_memory && (length = getline(&line, &capacity, file)) > 0) {
        number++;
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        done = read_journal_line(journal, line, (size_t)length, recipe, &has_memory);
    }
    if (!done)
        error_about(error, ERROR_WORK, path,
                    "line %zu is damaged or not from a report, and --in-place needs it to know what is done; repair "
                    "the line, or give another file for --report to filter all files",
                    number);
    else if (!has_memory || (!feof(file) && ferror(file) == 0))
        done = error_no_memory(error, "the report %s", path);
    else if (ferror(file) != 0)
        done = error_about(error, ERROR_READ, path, "cannot be read: %s", strerror(errno));
    free(line);
    fclose(file);
    if (done && journal->count > 0)
        qsort(journal->entries, journal->count, sizeof *journal->entries, compare_entries);
    return done;
}

bool journal_holds(const struct journal *journal, const uint8_t *bytes, size_t size)
{
    struct journal_entry entry = {.size = size};
    if (journal->count == 0 ||
        bsearch(&entry, journal->entries, journal->count, sizeof entry, compare_sizes) == NULL) /* as a rule */
        return false;
    SHA256Data(bytes, size, entry.hash);
    return bsearch(&entry, journal->entries, journal->count, sizeof entry, compare_entries) != NULL;
}

void journal_free(struct journal *journal)
{
    free(journal->entries);
    *journal = (struct journal){0};
}
