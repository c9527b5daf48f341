/* SPDX-License-Identifier: MIT
 *
 * The lines of --jobs-from by jansson, which checks them: UTF-8, depth, double names, and nothing after the object. */
#include "app/job_line.h"

#include "base/text.h"
#include "batch/job.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Bytes that are not UTF-8 ---- */

/* A name that is not UTF-8 has lone surrogates, as Python's surrogateescape writes them: "\udc80" to "\udcff" for the
 * bytes from 0x80. Jansson refuses these. So they become the last private characters of Unicode, U+10FF80 to U+10FFFF,
 * before the line is parsed, and bytes afterwards. Nobody uses these in names of files. */
enum { PRIVATE_BYTES = 4 };

static const uint8_t private_begin[] = {0xf4, 0x8f}; /* then 0xbe or 0xbf, and 0x80 to 0xbf */

/* The four digits after "\u" at TEXT, or -1. */
static int read_unit(const char *text)
{
    char digits[5] = "";
    if (text[0] != '\\' || text[1] != 'u')
        return -1;
    strncpy(digits, text + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Let lone surrogates for bytes become private characters, which are shorter. Returns the new size. */
static size_t hide_bytes(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        const int unit = read_unit(at);
        if (unit >= 0xdc80 && unit <= 0xdcff) {
            memcpy(to, private_begin, sizeof private_begin);
            to[2] = (char)(0xbe + (unit >> 6 & 1));
            to[3] = (char)(0x80 + (unit & 0x3f));
            to += PRIVATE_BYTES;
            at += 6;
            continue;
        }
        /* A high surrogate takes the low one that follows with it, and a backslash its character. */
        const size_t length = unit >= 0xd800 && unit <= 0xdbff && read_unit(at + 6) >= 0 ? 12
                              : *at == '\\' && at[1] != '\0'                             ? 2
                                                                                         : 1;
        memmove(to, at, length);
        to += length;
        at += length;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* A copy of TEXT with these bytes again. */
static char *show_bytes(const char *text)
{
    char *copy = strdup(text);
    char *to = copy;
    for (const char *at = copy; copy != NULL && *at != '\0';) {
        const uint8_t *bytes = (const uint8_t *)at;
        if (memcmp(at, private_begin, sizeof private_begin) == 0 && (bytes[2] == 0xbe || bytes[2] == 0xbf)) {
            *to++ = (char)((bytes[2] & 1) << 6 | 0x80 | (bytes[3] & 0x3f));
            at += PRIVATE_BYTES;
        } else {
            *to++ = *at++;
        }
    }
    if (copy != NULL)
        *to = '\0';
    return copy;
}

/* ---- The id ---- */

/* The first character after the string at TEXT, or the end of TEXT. */
static const char *end_of_string(const char *text)
{
    for (text++; *text != '"' && *text != '\0'; text++)
        text += *text == '\\' && text[1] != '\0';
    return text + (*text == '"');
}

/* The end of the value at TEXT: the comma or bracket after it, or the end of TEXT. */
static const char *end_of_value(const char *text)
{
    for (int depth = 0;; text++) {
        while (*text == '"')
            text = end_of_string(text);
        if (*text == '\0' || (depth == 0 && strchr(",}]", *text) != NULL))
            return text;
        depth += *text == '{' || *text == '[';
        depth -= *text == '}' || *text == ']';
    }
}

/* Is "id" the string at TEXT, with or without escapes? */
static bool is_id(const char *text)
{
    static const char *const letters[2][2] = {{"i", "\\u0069"}, {"d", "\\u0064"}};
    text++;
    for (int i = 0; i < 2; i++) {
        const char *spelling = letters[i][*text == '\\'];
        if (strncmp(text, spelling, strlen(spelling)) != 0)
            return false;
        text += strlen(spelling);
    }
    return *text == '"';
}

/* Find the value of "id" in TEXT, which may be no JSON. It ends before *END. Returns NULL if there is none. */
static const char *find_id(const char *text, const char **end)
{
    static const char blanks[] = " \t\r\n";
    const char *at = strchr(text, '{');
    while (at != NULL && *at != '\0' && *(at += 1 + strspn(at + 1, blanks)) == '"') {
        const char *value = end_of_string(at);
        value += strspn(value, blanks);
        value += *value == ':';
        value += strspn(value, blanks);
        const char *last = *end = end_of_value(value);
        while (*end > value && strchr(blanks, (*end)[-1]) != NULL)
            --*end;
        if (is_id(at))
            return value;
        at = *last == ',' ? last : NULL;
    }
    return NULL;
}

/* Let the id from FROM to END be one that jansson takes: without the backslash of units that are no characters, and
 * with one digit for many. It is JSON if it was. Returns the new end. */
static char *simplify_id(char *from, const char *end)
{
    char *to = from, before = ' ';
    bool in_string = false, in_tail = false; /* after the point or exponent of a number */
    for (const char *at = from; at < end; before = *at++) {
        const int unit = in_string ? read_unit(at) : -1;
        const bool is_digit = !in_string && *at >= '0' && *at <= '9', follows = before >= '0' && before <= '9';
        if (unit == 0 || (unit >= 0xd800 && unit <= 0xdfff))
            continue;
        if (is_digit && follows && (in_tail || to[-1] != '0'))
            continue;
        in_tail = !in_string && (strchr(".eE+", *at) != NULL || (in_tail && (is_digit || *at == '-')));
        if (*at == '"')
            in_string = !in_string;
        *to++ = *at;
        if (in_string && *at == '\\' && at + 1 < end)
            *to++ = *++at;
    }
    return to;
}

/* ---- Members ---- */

static const char *const file_names[JOB_FILES] = {[JOB_INPUT] = "input",
                                                  [JOB_OUTPUT] = "output",
                                                  [JOB_EXPECTED] = "expected",
                                                  [JOB_ACTUAL] = "actual",
                                                  [JOB_DIFF] = "diff"};

const char *job_file_name(enum job_file file)
{
    return file_names[file];
}

/* Add an option with a value that is no list. */
static bool add_value(FILE *options, const char *name, json_t *value, struct error *error)
{
    if (json_is_array(value) || json_is_object(value))
        return error_set(error, ERROR_USAGE, "\"%s\" %s; give a string or a number", name,
                         json_is_array(value) ? "is a list of lists" : "is an object");
    if (json_is_null(value))
        return true;
    fprintf(options, "%s%c%c", name, '\0', json_is_true(value) ? '+' : json_is_false(value) ? '-' : '=');
    if (json_is_number(value)) {
        fprintf(options, "%.15g", json_number_value(value));
    } else if (json_is_string(value)) {
        char *text = show_bytes(json_string_value(value));
        if (text == NULL)
            return error_no_memory(error, "the options of a job");
        fputs(text, options);
        free(text);
    }
    fputc('\0', options);
    return true;
}

/* Add an option. A list repeats it. */
static bool add_option(FILE *options, const char *name, json_t *value, struct error *error)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    bool done = true;
    for (size_t i = 0; done && i < count; i++)
        done = add_value(options, name, json_is_array(value) ? json_array_get(value, i) : value, error);
    return done;
}

/* Take a member of the object. */
static bool add_member(struct job_line *line, FILE *options, const char *name, json_t *value, struct error *error)
{
    if (strcmp(name, "id") == 0)
        return true;
    for (int i = 0; i < JOB_FILES; i++) {
        if (strcmp(name, file_names[i]) != 0)
            continue;
        if (json_is_null(value))
            return true;
        if (!json_is_string(value) || json_string_length(value) == 0)
            return error_set(error, ERROR_USAGE, "\"%s\" is not a path; give the path of a file as a string", name);
        line->files[i] = show_bytes(json_string_value(value));
        return line->files[i] != NULL || error_no_memory(error, "a path");
    }
    return add_option(options, name, value, error);
}

static bool add_members(struct job_line *line, json_t *object, struct error *error)
{
    struct text_buffer options;
    FILE *file = text_open(&options);
    bool done = true; /* also without members */
    const char *name;
    json_t *value;
    if (file == NULL)
        return error_no_memory(error, "the options of a job");
    json_object_foreach(object, name, value)
    {
        done = add_member(line, file, name, value, error);
        if (!done)
            break;
    }
    if (!text_close(file, &options))
        return error_no_memory(error, "the options of a job");
    line->options = options.bytes;
    line->size = options.size;
    return done;
}

/* Let OBJECT be that of its output NUMBER: what the output has replaces what the line has. */
static bool take_output(json_t *object, size_t number, size_t *count, struct error *error)
{
    json_t *outputs = json_object_get(object, "outputs"), *output = json_array_get(outputs, number);
    *count = 1;
    if (outputs == NULL || json_is_null(outputs))
        return true;
    if (json_array_size(outputs) > OUTPUTS_MAX)
        return error_set(error, ERROR_USAGE, "\"outputs\" has more than %d objects; give several lines", OUTPUTS_MAX);
    *count = json_array_size(outputs);
    if (!json_is_object(output))
        return error_set(
            error, ERROR_USAGE,
            "\"outputs\" is not a list of objects; give an object for each output, such as {\"output\": \"a.jpg\"}");
    if (json_object_get(output, "input") != NULL || json_object_get(output, "id") != NULL ||
        json_object_get(output, "outputs") != NULL)
        return error_set(error, ERROR_USAGE,
                         "\"input\", \"id\" and \"outputs\" are for the line, not for outputs; move them");
    json_incref(output);
    const bool done = json_object_del(object, "outputs") == 0 && json_object_update(object, output) == 0;
    json_decref(output);
    return done || error_no_memory(error, "an output");
}

/* ---- A line ---- */

bool job_line_parse(const char *text, size_t size, size_t number, struct job_line *line, struct error *error)
{
    json_error_t reason;
    *line = (struct job_line){0};
    if (strlen(text) != size)
        return error_set(error, ERROR_USAGE, "contains a NUL byte; give an object of JSON");
    char *copy = strdup(text);
    if (copy == NULL)
        return error_no_memory(error, "a line");
    const char *id_end, *id = find_id(text, &id_end);
    if (id != NULL) {
        char *from = copy + (id - text), *end = simplify_id(from, copy + (id_end - text));
        json_t *alone = json_loadb(from, (size_t)(end - from), JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &reason);
        if (alone != NULL) { /* an id may be any JSON, also with a name twice: parse the line without it */
            line->id = strndup(id, (size_t)(id_end - id));
            *from = '0';
            end = from + 1;
        }
        json_decref(alone);
        memmove(end, copy + (id_end - text), strlen(id_end) + 1);
    }
    size = hide_bytes(copy);
    /* Numbers become doubles, so that one with many digits is no error. */
    json_t *object = json_loadb(copy, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &reason);
    free(copy);
    bool done = json_is_object(object);
    if (object == NULL)
        error_set(error, ERROR_USAGE, "is not JSON: %s at column %d; give one object in one line", reason.text,
                  reason.column);
    else if (!done)
        error_set(error, ERROR_USAGE, "is not an object of JSON; give one object in one line");
    else
        done = (line->id != NULL || (id == NULL && (line->id = strdup("null")) != NULL) ||
                error_no_memory(error, "an id")) &&
               take_output(object, number, &line->outputs, error) && add_members(line, object, error);
    json_decref(object);
    return done;
}

void job_line_free(struct job_line *line)
{
    free(line->id);
    for (int i = 0; i < JOB_FILES; i++)
        free(line->files[i]);
    free(line->options);
    *line = (struct job_line){0};
}
