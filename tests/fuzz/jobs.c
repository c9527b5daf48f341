/* SPDX-License-Identifier: MIT
 *
 * Fuzzing --jobs-from: any bytes are lines, and any line is a job or is refused with one sentence. */
#include "app/job_line.h"
#include "base/lines.h"
#include "base/text.h"
#include "batch/job.h"

#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The options are well formed, and end where they say. */
static void check_options(const struct job_line *line)
{
    const char *at = line->options, *end = line->options + line->size;
    while (at < end) {
        at += strlen(at) + 1;
        CHECK(at < end);
        CHECK(*at == '=' || *at == '+' || *at == '-');
        CHECK(*at == '=' || at[1] == '\0');
        at += strlen(at) + 1;
    }
    CHECK(at == end);
}

/* The id is a value of JSON: a line that has nothing else has the same. */
static void check_id(const char *id)
{
    struct job_line again;
    struct error error;
    char *text = malloc(strlen(id) + 16);
    CHECK(text);
    const int size = sprintf(text, "{ \"id\" :%s }", id);
    CHECK(job_line_parse(text, (size_t)size, 0, &again, &error));
    CHECK(strcmp(again.id, id) == 0);
    CHECK(again.size == 0);
    job_line_free(&again);
    free(text);
}

/* Check the line for output NUMBER, or for its only one. Returns how many it has. */
static size_t check_output(const char *text, size_t size, size_t number)
{
    struct job_line line;
    struct error error = {.code = ERROR_NONE};
    if (job_line_parse(text, size, number, &line, &error)) {
        CHECK(line.outputs >= 1 && line.outputs <= OUTPUTS_MAX);
        CHECK(line.id != NULL);
        check_id(line.id);
        check_options(&line);
        for (int i = 0; i < JOB_FILES; i++)
            CHECK(line.files[i] == NULL || line.files[i][0] != '\0');
    } else {
        CHECK(error.code == ERROR_USAGE);
        CHECK(error.message[0] != '\0');
    }
    const size_t outputs = line.outputs;
    job_line_free(&line);
    return outputs;
}

static void check_line(const char *text, size_t size)
{
    const size_t outputs = check_output(text, size, 0);
    for (size_t i = 1; i < outputs && i < OUTPUTS_MAX; i++)
        check_output(text, size, i);
}

/* The reader gives the lines of the bytes, however long it allows them to be. */
static void check_reader(const uint8_t *data, size_t size, size_t max)
{
    struct error error;
    struct line_reader reader = {.descriptor = memfd_create("fuzz", MFD_CLOEXEC), .max = max};
    CHECK(reader.descriptor >= 0);
    CHECK(write(reader.descriptor, data, size) == (ssize_t)size && lseek(reader.descriptor, 0, SEEK_SET) == 0);
    char *line;
    size_t length, at = 0;
    for (;;) {
        const enum line_result result = lines_next(&reader, &line, &length, &error);
        if (result == LINE_END)
            break;
        CHECK(at < size);
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t wanted = end != NULL ? (size_t)(end - data) - at : size - at;
        CHECK((result == LINE_TOO_LONG) == (wanted > max));
        if (result == LINE_READ) {
            CHECK(length == wanted && memcmp(line, data + at, length) == 0 && line[length] == '\0');
            check_line(line, length);
        }
        at += wanted + 1;
    }
    CHECK(at >= size && error.code == ERROR_NONE);
    lines_free(&reader);
    close(reader.descriptor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_reader(data, size, 1 << 16);
    check_reader(data, size, size > 0 ? 1 + data[size - 1] % 64 : 1);
    return 0;
}
