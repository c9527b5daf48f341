/* SPDX-License-Identifier: MIT
 *
 * Run files through a fuzzer without libFuzzer: replay FILE|FOLDER... A failed CHECK aborts. The exit status is 1 if
 * there is nothing to read or an input takes too long. */
#include "base/file.h"

#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The longest that an input may take, in seconds. */
#define MAX_SECONDS 10.0

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Run one file; the number of files that were run, or -1. */
static int replay_file(const char *path)
{
    struct error error;
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct stat status;

    if (stat(path, &status) != 0 || (status.st_size > 0 && !file_read(path, SIZE_MAX, &bytes, &size, NULL, &error))) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return -1;
    }
    /* A block of exactly this size, so that a sanitizer sees a read beyond its end. */
    uint8_t *const exact = malloc(size > 0 ? size : 1);
    CHECK(exact);
    if (size > 0)
        memcpy(exact, bytes, size);
    free(bytes);
    fprintf(stderr, "%s\n", path); /* after an abort the last line names the input */
    const double start = now();
    LLVMFuzzerTestOneInput(exact, size);
    const double seconds = now() - start;
    free(exact);
    if (!(seconds <= MAX_SECONDS)) {
        fprintf(stderr, "%s: took %.1f seconds\n", path, seconds);
        return -1;
    }
    return 1;
}

static int replay(const char *path)
{
    struct dirent **entries;
    struct stat status;
    int count = 0;

    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return replay_file(path);
    const int found = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char name[4096];
        if (count >= 0 && entries[i]->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            const int done = replay_file(name);
            count = done < 0 ? -1 : count + done;
        }
        free(entries[i]);
    }
    if (found >= 0)
        free(entries);
    return count;
}

int main(int argc, char *argv[])
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        const int done = replay(argv[i]);
        if (done <= 0)
            return 1;
        count += done;
    }
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
