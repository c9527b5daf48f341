/* SPDX-License-Identifier: MIT
 *
 * Run damaged files through a fuzzer, the same ones each time: mutate CUTS FLIPS FILE|FOLDER...
 *
 * Each file is truncated at CUTS offsets, equally far apart, once as it is and once with an end marker added. FLIPS
 * inputs have 1 to 8 bytes changed. Every other of them goes through the fuzzer's mutator, which mends the checksums of
 * a PNG, so that the decoders are reached. Child processes run the inputs. An input that crashes, is reported by a
 * sanitizer or takes more than 10 seconds of processor time is written to the working folder, and the others continue.
 * The exit status is 1 if there was such an input, or if hardly any input reached the decoders. */
#include "base/file.h"
#include "base/random.h"
#include "codec/codec.h"

#include "fuzz.h"
#include "tests/lib/png_chunks.h"

#include <dirent.h>
#include <libdeflate.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SECONDS = 10,  /* seconds of processor time: other work on the machine does not count */
    MAX_WAITING = 300, /* by the clock, for an input that waits for ever */
    LARGE = 1 << 14,   /* bytes; larger files are slow, so only every 16th round changes them */
    ROUNDS_OF_LARGE = 16,
    GROWTH_MAX = 1 << 12, /* bytes that a mutation may add */
    A_PROCESS = 500,
};

/* A file from which inputs are made. */
struct source {
    char *name;
    uint8_t *bytes;
    size_t size;
    bool png;
};

struct sources {
    struct source *list;
    size_t count;
};

/* Shared by the processes. */
struct progress {
    size_t index;   /* the index of the current input */
    bool ended;     /* the process has run all of its inputs */
    size_t passed;  /* inputs with an intact container */
    double slowest; /* seconds of a processor */
    size_t slowest_index;
};

static uint64_t chance; /* the state of the random numbers; set before each input */

static uint64_t next_chance(void)
{
    return random_next(&chance);
}

/* Instead of libFuzzer's: change 1 to 8 bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity)
{
    (void)capacity;
    for (uint64_t left = size > 0 ? next_chance() % 8 + 1 : 0; left > 0; left--)
        data[next_chance() % size] ^= (uint8_t)(next_chance() % 255 + 1);
    return size;
}

/* ---- The inputs ---- */

/* Cut SOURCE to SIZE bytes. With END add an end: for a PNG the length and checksum of the last chunk, and IEND. */
static size_t cut(const struct source *source, size_t size, bool end, uint8_t *out)
{
    static const uint8_t png_end[12] = {[4] = 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

    memcpy(out, source->bytes, size);
    if (!end)
        return size;
    if (!source->png) {
        memcpy(out + size, "\xff\xd9", 2);
        return size + 2;
    }
    size_t at = PNG_SIGNATURE;
    for (size_t length; (length = png_chunk_length(out, size, at)) != SIZE_MAX;)
        at += PNG_OVERHEAD + length;
    if (at + PNG_DATA <= size) {
        png_put32(out + at, (uint32_t)(size - at - PNG_DATA));
        png_put32(out + size, libdeflate_crc32(0, out + at + 4, size - at - 4));
        size += 4;
    } else {
        size = at < size ? at : size;
    }
    memcpy(out + size, png_end, sizeof png_end);
    return size + sizeof png_end;
}

static size_t flip(const struct sources *sources, size_t number, uint8_t *out)
{
    const size_t round = number / sources->count;
    size_t chosen = number % sources->count;

    while (sources->list[chosen].size > LARGE && round % ROUNDS_OF_LARGE != 0)
        chosen = (chosen + 1) % sources->count;
    const struct source *const source = &sources->list[chosen];
    memcpy(out, source->bytes, source->size);
    chance = number;
    if (number % 2 == 0)
        return LLVMFuzzerMutate(out, source->size, source->size + GROWTH_MAX);
    /* An even seed: the checksums are mended. */
    return LLVMFuzzerCustomMutator(out, source->size, source->size + GROWTH_MAX,
                                   (unsigned)(next_chance() & 0xfffffffeu));
}

/* Make input number INDEX: first the truncated ones, then those with changed bytes. */
static size_t make(const struct sources *sources, size_t cuts, size_t index, uint8_t *out)
{
    const size_t all_cuts = sources->count * cuts * 2;

    if (index >= all_cuts)
        return flip(sources, index - all_cuts, out);
    const struct source *const source = &sources->list[index / (cuts * 2)];
    return cut(source, source->size * (index / 2 % cuts) / cuts, index % 2 != 0, out);
}

/* ---- The files ---- */

static void add_file(struct sources *sources, const char *path)
{
    struct error error;
    struct source source;
    struct stat status;

    CHECK(stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0);
    CHECK(file_read(path, SIZE_MAX, &source.bytes, &source.size, NULL, &error));
    source.png = is_png(source.bytes, source.size);
    source.name = strdup(path);
    if (!source.png && !(source.size > 2 && source.bytes[0] == 0xff && source.bytes[1] == 0xd8)) {
        free(source.bytes); /* neither PNG nor JPEG */
        free(source.name);
        return;
    }
    sources->list = realloc(sources->list, (sources->count + 1) * sizeof *sources->list);
    CHECK(sources->list && source.name);
    sources->list[sources->count++] = source;
}

static void add(struct sources *sources, const char *path)
{
    struct dirent **entries;
    struct stat status;

    CHECK(stat(path, &status) == 0);
    if (!S_ISDIR(status.st_mode)) {
        add_file(sources, path);
        return;
    }
    const int found = scandir(path, &entries, NULL, alphasort);
    CHECK(found >= 0);
    for (int i = 0; i < found; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && stat(name, &status) == 0 && status.st_size > 0)
            add_file(sources, name);
        free(entries[i]);
    }
    free(entries);
}

/* ---- Running ---- */

/* Processor time of this process in seconds. */
static double used(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A signal ends this process when either time has passed; 0, 0 means never. */
static void set_clocks(int processor, unsigned waiting)
{
    const struct itimerval timer = {.it_value = {.tv_sec = processor}};

    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
    alarm(waiting);
}

/* Run input number INDEX. */
static void run(const struct sources *sources, size_t cuts, size_t index, uint8_t *memory, struct progress *progress)
{
    const size_t size = make(sources, cuts, index, memory);
    /* Exactly SIZE bytes, so that a sanitizer sees a read beyond the end. */
    uint8_t *const exact = malloc(size > 0 ? size : 1);
    struct codec_info info;
    struct error error;
    const double start = used();

    CHECK(exact);
    memcpy(exact, memory, size);
    progress->index = index;
    set_clocks(MAX_SECONDS, MAX_WAITING);
    progress->passed += codec_inspect(exact, size, "mutate", NULL, &info, &error);
    LLVMFuzzerTestOneInput(exact, size);
    set_clocks(0, 0);
    free(exact);
    if (used() - start > progress->slowest) {
        progress->slowest = used() - start;
        progress->slowest_index = index;
    }
}

/* Write input number INDEX to a file, for inspection. */
static void keep(const struct sources *sources, size_t cuts, size_t index, uint8_t *memory)
{
    char name[64];

    snprintf(name, sizeof name, "mutate-%zu", index);
    const size_t size = make(sources, cuts, index, memory);
    FILE *const file = fopen(name, "wb");
    CHECK(file && fwrite(memory, 1, size, file) == size && fclose(file) == 0);
    fprintf(stderr, "input %zu, in the file %s\n", index, name);
}

/* Run the inputs from FIRST to END - 1 in a child process. Returns the index to continue with. */
static size_t run_part(const struct sources *sources, size_t cuts, size_t first, size_t end, uint8_t *memory,
                       struct progress *progress, size_t *failures)
{
    int status;

    progress->ended = false;
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (size_t i = first; i < end; i++)
            run(sources, cuts, i, memory, progress);
        progress->ended = true;
        exit(0); /* sanitizers look for leaks here */
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return end;
    ++*failures;
    if (progress->ended) {
        fprintf(stderr, "inputs %zu to %zu: the process ended with status %d\n", first, end - 1, status);
        return end;
    }
    const int ending = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    fprintf(stderr, "%s with status %d: ", ending == SIGPROF || ending == SIGALRM ? "too slow" : "failed", status);
    keep(sources, cuts, progress->index, memory);
    return progress->index + 1;
}

int main(int argc, char *argv[])
{
    const struct rlimit no_core = {0, 0};
    struct sources sources = {0};
    size_t largest = 0, failures = 0;
    const time_t start = time(NULL);

    if (argc < 4) {
        fprintf(stderr, "usage: mutate CUTS FLIPS FILE|FOLDER...\n");
        return 2;
    }
    const size_t cuts = strtoul(argv[1], NULL, 10), flips = strtoul(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++)
        add(&sources, argv[i]);
    CHECK(sources.count > 0);
    for (size_t i = 0; i < sources.count; i++)
        largest = sources.list[i].size > largest ? sources.list[i].size : largest;
    uint8_t *const memory = malloc(largest + GROWTH_MAX);
    struct progress *const progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory && progress != MAP_FAILED);
    setrlimit(RLIMIT_CORE, &no_core);

    const size_t count = sources.count * cuts * 2 + flips;
    for (size_t i = 0; i < count;)
        i = run_part(&sources, cuts, i, i + A_PROCESS < count ? i + A_PROCESS : count, memory, progress, &failures);
    printf("%zu files, %zu inputs, %zu with an intact container, in %ld s; the slowest took %.2f s (%zu); "
           "%zu failures\n",
           sources.count, count, progress->passed, (long)(time(NULL) - start), progress->slowest,
           progress->slowest_index, failures);
    for (size_t i = 0; i < sources.count; i++) {
        free(sources.list[i].name);
        free(sources.list[i].bytes);
    }
    free(sources.list);
    free(memory);
    return failures == 0 && progress->passed > count / 20 ? 0 : 1;
}
