/* SPDX-License-Identifier: MIT
 *
 * In a build without jansson there is no --jobs-from. */
#include "app/job_line.h"

#include <stddef.h>

const bool job_line_has_json = false;

const char *job_file_name(enum job_file file)
{
    (void)file;
    return "";
}

bool job_line_parse(const char *text, size_t size, struct job_line *line, struct error *error)
{
    (void)text, (void)size;
    *line = (struct job_line){0};
    return error_set(error, ERROR_USAGE, "this gpuconv was built without jansson, which reads JSON");
}

void job_line_free(struct job_line *line)
{
    (void)line;
}
