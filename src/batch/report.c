/* SPDX-License-Identifier: MIT
 *
 * The report's file and its JSON. */
#include "batch/report.h"

#include "base/file.h"
#include "container/other_content.h"
#include "metadata/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- The file ---- */

static bool open_failed(const char *path, struct error *error)
{
    return error_about(error, ERROR_OUTPUT, path, "the report cannot be written: %s; choose another file",
                       strerror(errno));
}

/* If the report that we append to ends in a partial line, which a full disk may leave, end that first. */
static bool end_partial_line(const char *path, int descriptor, const struct stat *status)
{
    char last = '\n';
    if (status->st_size == 0)
        return true;
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader >= 0) {
        if (pread(reader, &last, 1, status->st_size - 1) != 1)
            last = '\n'; /* unknown: add no newline */
        close(reader);
    }
    return last == '\n' || write(descriptor, "\n", 1) == 1;
}

/* Flush the folder of the new file PATH, so that its name survives a power cut. Some file systems cannot do that. */
static bool flush_folder(const char *path)
{
    char *folder = file_folder(path);
    const int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool done = descriptor < 0 || fsync(descriptor) == 0 || errno == EINVAL;
    if (descriptor >= 0)
        close(descriptor);
    free(folder);
    return done;
}

/* Lock the journal until it is closed or the process ends, so that no other run in place reads it meanwhile. The open
 * file has the lock, because a process loses its own when end_partial_line closes another descriptor. Machines that
 * share a file system share the lock. */
static bool lock_journal(const struct report *report, struct error *error)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(report->descriptor, F_OFD_SETLK, &lock) == 0)
        return true;
    if (errno == EAGAIN || errno == EACCES)
        return error_about(error, ERROR_WRITE, report->path,
                           "is the report of an --in-place run that has not ended; wait for its end, and run again");
    return error_about(error, ERROR_OUTPUT, report->path,
                       "the report cannot be locked: %s; choose another file, on a file system with locks",
                       strerror(errno));
}

bool report_open(struct report *report, const char *path, const struct report_run *run, struct error *error)
{
    *report = (struct report){.run = *run, .path = path, .descriptor = -1};
    if (gethostname(report->host, sizeof report->host - 1) != 0)
        report->host[0] = '\0';
    if (path == NULL)
        return true;
    const bool standard = file_is_standard(path), is_journal = run->recipe != NULL && !standard;
    struct stat status;
    report->descriptor =
        standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (report->descriptor < 0)
        return open_failed(path, error);
    if (fstat(report->descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    report->device = status.st_dev;
    report->inode = status.st_ino;
    if (is_journal && !(lock_journal(report, error) && journal_read(path, run->recipe, &report->journal, error)))
        return false;
    return standard ||
           (end_partial_line(path, report->descriptor, &status) &&
            (!is_journal || status.st_size > 0 || flush_folder(path))) ||
           open_failed(path, error);
}

bool report_close(struct report *report, struct error *error)
{
    const int descriptor = report->descriptor;
    report->descriptor = -1;
    journal_free(&report->journal);
    if (descriptor <= STDERR_FILENO || close(descriptor) == 0 || report->failed)
        return true;
    report->failed = true;
    return open_failed(report->path, error);
}

/* ---- A line ---- */

/* The moment, in UTC, MILLISECONDS ago. */
static void print_start(FILE *file, double milliseconds)
{
    char text[32];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t then = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)milliseconds;
    const time_t seconds = (time_t)(then / 1000);
    if (gmtime_r(&seconds, &parts) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts) > 0)
        fprintf(file, ",\"start\":\"%s.%03dZ\"", text, (int)(then % 1000));
}

/* Print the members about the run, not the image. */
static void print_run(FILE *file, const struct report *report, const struct report_run *run)
{
    text_print_json_member(file, "filter", run->filter);
    text_print_json_member(file, "options", run->options);
    if (run->files > 0)
        fprintf(file, ",\"shard\":\"%d/%d\",\"files\":%zu,\"listing\":\"%016" PRIx64 "\"", run->shard.index + 1,
                run->shard.count > 0 ? run->shard.count : 1, run->files, run->listing);
    text_print_json_member(file, "pixels", PIXELS_NAME);
    text_print_json_member(file, "host", report->host);
}

/* Print why the job failed. */
static void print_failure(FILE *file, const struct error *error)
{
    static const char *const classes[] = {
        [ERROR_NONE] = "input",
        [ERROR_WORK] = "input",
        [ERROR_USAGE] = "input",
        [ERROR_READ] = "input",
        [ERROR_OUTPUT] = "output",
        [ERROR_WRITE] = "output",
        [ERROR_LIMIT] = "memory",
        [ERROR_MEMORY] = "memory",
        [ERROR_NO_GPU] = "gpu",
        [ERROR_GPU] = "gpu",
        [ERROR_INTERRUPTED] = "interrupted",
    };
    char text[ERROR_TEXT];
    error_text(error, text, sizeof text);
    text_print_json_member(file, "error", text);
    text_print_json_member(file, "class", classes[error->code]);
    fprintf(file, ",\"retry\":%s", error_may_retry(error->code) ? "true" : "false");
}

static void print_report_line(FILE *file, const struct report *report, const struct job_result *result,
                              const char *status)
{
    if (result->job->id != NULL)
        fprintf(file, "{\"id\":%s,\"status\":\"%s\"", result->job->id, status);
    else
        fprintf(file, "{\"status\":\"%s\"", status);
    if (result->sha256[0] != '\0') /* first, so that journal.c need not know the other members */
        fprintf(file, ",\"recipe\":\"%s\",\"sha256\":\"%s\",\"output_bytes\":%zu", report->run.recipe, result->sha256,
                result->output_bytes);
    text_print_json_member(file, "input", result->job->input);
    text_print_json_member(file, "output", result->job->output);
    fprintf(file, ",\"input_bytes\":%zu", result->input_bytes);
    if (result->output_width > 0)
        fprintf(file, ",\"width\":%d,\"height\":%d,\"channels\":%d,\"bits\":%d", result->output_width,
                result->output_height, result->output_channels, result->bits);
    if (result->output_width != result->width || result->output_height != result->height)
        fprintf(file, ",\"input_width\":%d,\"input_height\":%d", result->width, result->height);
    if (result->digest[0] != '\0')
        text_print_json_member(file, "digest", result->digest);
    else if (result->outcome == JOB_DONE && result->sha256[0] == '\0')
        fprintf(file, ",\"output_bytes\":%zu", result->output_bytes);
    if (result->decoder != NULL)
        text_print_json_member(file, "decoder", result->decoder->name);
    if (result->converted_by[0] != '\0')
        text_print_json_member(file, "colours", result->converted_by);
    if (result->pages > 1 && (result->outcome == JOB_FAILED || !result->job->all_pages))
        fprintf(file, ",\"page\":%d", result->page);
    if (result->pages > 1)
        fprintf(file, ",\"pages\":%d", result->pages);
    if (result->shrink > 0)
        fprintf(file, ",\"decoded_at\":\"1/%d\"", 1 << result->shrink);
    if (result->encoder != NULL)
        text_print_json_member(file, "encoder", result->encoder->name);
    if (result->variants[0] != '\0') {
        text_print_json_member(file, "backend", backend_name(result->backend));
        if (result->device >= 0)
            fprintf(file, ",\"device\":%d", result->device);
        text_print_json_member(file, "variant", result->variants);
    }
    if (result->outcome == JOB_DONE && result->other_content != 0) {
        char other_content[OTHER_CONTENT_TEXT];
        container_print_other_content(result->other_content, other_content);
        text_print_json_member(file, "pictures_left_out", other_content);
    }
    if (result->outcome == JOB_DONE && (result->dropped_on_read | result->dropped_on_write) != 0) {
        char parts[METADATA_PARTS * METADATA_REASONS * 40]; /* none is longer than 39 bytes */
        metadata_print_dropped(result->dropped_on_read | result->dropped_on_write, parts, sizeof parts);
        text_print_json_member(file, "metadata_left_out", parts);
    }
    if (result->outcome == JOB_FAILED)
        print_failure(file, &result->error);
    if (result->outcome != JOB_SKIPPED) {
        fputs(",\"ms\":{", file);
        for (int phase = 0; phase < PHASE_COUNT; phase++)
            if (result->phases.milliseconds[phase] > 0)
                fprintf(file, "\"%s\":%.3f,", phase_name((enum phase)phase), result->phases.milliseconds[phase]);
        fprintf(file, "\"total\":%.3f}", phases_total(&result->phases));
    }
    print_run(file, report, result->job->run_members != NULL ? result->job->run_members : &report->run);
    print_start(file, phases_total(&result->phases));
    fputs("}\n", file);
}

/* Close FILE and write the line. */
static bool write_line(const struct report *report, FILE *file, struct text_buffer *line, struct error *error)
{
    if (file == NULL || !text_close(file, line))
        return error_no_memory(error, "a line of the report %s", report->path);
    /* One call writes the line, so that the lines of several programs that append to one file stay whole. */
    const ssize_t wrote = write(report->descriptor, line->bytes, line->size);
    const bool done = wrote == (ssize_t)line->size;
    if (!done)
        error_about(error, ERROR_WRITE, report->path,
                    "the report cannot be written: %s; free some space or choose another file",
                    wrote < 0 ? strerror(errno) : "only a part of the line was written");
    free(line->bytes);
    return done;
}

bool report_append_text(struct report *report, FILE *file, struct text_buffer *line, struct error *error)
{
    report->failed = !write_line(report, file, line, error);
    return !report->failed;
}

bool report_begin(struct report *report, struct job_result *result, const uint8_t *bytes, struct error *error)
{
    struct text_buffer line;
    if (report->descriptor < 0 || report->run.recipe == NULL)
        return true;
    SHA256Data(bytes, result->output_bytes, result->sha256);
    FILE *file = text_open(&line);
    if (file != NULL)
        print_report_line(file, report, result, "begun");
    /* A pipe cannot be flushed. */
    const bool done = write_line(report, file, &line, error) &&
                      (fdatasync(report->descriptor) == 0 || errno == EINVAL || open_failed(report->path, error));
    if (!done)
        report->failed = true;
    return done;
}

bool report_append(struct report *report, const struct job_result *result, struct error *error)
{
    if (report->descriptor < 0 || report->failed)
        return true;
    static const char *const words[] = {[JOB_DONE] = "done", [JOB_SKIPPED] = "skipped", [JOB_FAILED] = "failed"};
    struct text_buffer line;
    FILE *file = text_open(&line);
    if (file != NULL)
        print_report_line(file, report, result, words[result->outcome]);
    return report_append_text(report, file, &line, error);
}
