/* SPDX-License-Identifier: MIT
 *
 * parse -> run -> exit code. The only file that prints to the user: what was asked for goes to standard output, errors,
 * warnings and --verbose to standard error. */
#include "bench.h"
#include "cli.h"
#include "codec.h"
#include "conv.h"
#include "device.h"
#include "error.h"
#include "filter.h"
#include "image.h"
#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest image file that is read: stb counts its bytes in an int. */
#define FILE_LIMIT ((size_t)INT32_MAX)

/* Print TEXT, which may hold names of files, so that no control character in it can move the cursor or change the
 * terminal: as \n, \t or \x1b. C2 80 to C2 9F are UTF-8's other control characters. */
static void print_escaped(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '\n')
            fputs("\\n", file);
        else if (*c == '\t')
            fputs("\\t", file);
        else if (*c < ' ' || *c == 0x7f)
            fprintf(file, "\\x%02x", *c);
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            fprintf(file, "\\x%02x\\x%02x", c[0], c[1]), c++;
        else
            fputc(*c, file);
    }
}

/* "gpuconv: TEXT", and the exit status that the error asks for. */
static int report(const struct error *error)
{
    fputs("gpuconv: ", stderr);
    print_escaped(stderr, error->message);
    fputc('\n', stderr);
    return (int)error->code;
}

static void warn(const struct options *options, const char *name, const char *text)
{
    if (options->quiet)
        return;
    fputs("gpuconv: warning: ", stderr);
    print_escaped(stderr, name);
    fputs(text, stderr);
    fputc('\n', stderr);
}

/* How a path is called in messages. */
static const char *path_name(const char *path, const char *standard)
{
    return strcmp(path, "-") == 0 ? standard : path;
}

/* Read and decode the image at PATH. */
static bool load(const char *path, const struct options *options, struct stages *stages, struct image *image,
                 enum format *format, struct error *error)
{
    const char *name = path_name(path, "standard input");
    uint8_t *bytes;
    size_t size;
    if (!codec_read(path, FILE_LIMIT, &bytes, &size, error))
        return false;
    stages_end(stages, STAGE_READ);

    struct codec_info info;
    const bool done = codec_decode(bytes, size, name, image, &info, error);
    free(bytes);
    stages_end(stages, STAGE_DECODE);
    if (!done)
        return false;
    if (info.reduced)
        warn(options, name, ": 16 bits a sample are reduced to 8");
    *format = info.format;
    return true;
}

/* Encode IMAGE and write it to PATH; *SIZE becomes the file's bytes. */
static bool save(const char *path, const struct options *options, enum format format, const struct image *image,
                 struct stages *stages, size_t *size, struct error *error)
{
    if (format == FORMAT_JPEG && image_has_alpha(image))
        warn(options, path_name(path, "standard output"), ": JPEG holds no alpha; the alpha channel is dropped");
    uint8_t *bytes;
    if (!codec_encode(image, format, options->quality, &bytes, size, error))
        return false;
    stages_end(stages, STAGE_ENCODE);
    const bool done = codec_write(path, bytes, *size, error);
    free(bytes);
    stages_end(stages, STAGE_WRITE);
    return done;
}

/* Could PATH be written? Said before the work what codec_write would say after it. */
static bool check_output(const char *path, struct error *error)
{
    struct stat facts;
    if (strcmp(path, "-") == 0) {
        if (isatty(STDOUT_FILENO))
            return error_set(error, ERROR_USAGE,
                             "standard output is a terminal, which cannot show an image; redirect it or name a file");
        return true;
    }
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return error_set(error, ERROR_WORK, "%s: is a folder; give the path of a file", path);
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return true;
    char *folder = strndup(path, (size_t)(slash - path));
    if (folder == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the name of a folder; free some");
    bool done = stat(folder, &facts) == 0;
    if (done && !S_ISDIR(facts.st_mode)) {
        done = false;
        errno = ENOTDIR;
    }
    if (!done)
        error_set(error, ERROR_WORK, "%s: cannot be written: %s; its folder must exist", path, strerror(errno));
    free(folder);
    return done;
}

static bool check_files(const struct options *options, struct error *error)
{
    if (!check_output(options->output, error))
        return false;
    if (!options->in_place && codec_same_file(options->input, options->output))
        return error_set(error, ERROR_USAGE,
                         "%s is the same file as %s; name another OUTPUT, or give --in-place to replace INPUT",
                         options->output, options->input);
    return true;
}

/* The filters of the command line, as its options want them; to be released with free. */
static bool find_filters(const struct options *options, struct filter **filters, size_t *count, struct error *error)
{
    const char *named = options->mode == MODE_BENCH ? options->bench_filter : options->filter;
    if (named == NULL ? !bench_default_filters(filters, count, error) : !filter_find_all(named, filters, count, error))
        return false;
    for (size_t i = 0; i < *count; i++) {
        struct filter *filter = &(*filters)[i];
        if (options->flip)
            filter_flip(filter);
        filter->absolute = filter->absolute || options->absolute;
    }
    return true;
}

/* One line of --verbose: a word, and what is to be said about it. */
static void tell(const char *word, const char *format, ...) ERROR_PRINTF(2, 3);

static void tell(const char *word, const char *format, ...)
{
    struct error line; /* only for its room */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line.message, sizeof line.message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%-9s ", word);
    print_escaped(stderr, line.message);
    fputc('\n', stderr);
}

static void tell_image(const char *word, const char *name, const struct image *image, enum format format)
{
    tell(word, "%s: %s, %d x %d pixels, %d channel%s", name, codec_format_name(format), image->width, image->height,
         image->channels, image->channels == 1 ? "" : "s");
}

static void tell_pipeline(const struct pipeline *pipeline)
{
    const struct request *request = pipeline->request;
    tell("backend", "%s: %s", pipeline->backend == BACKEND_CUDA ? "cuda" : "cpu", pipeline->why.message);
#ifdef GPUCONV_CUDA
    if (pipeline->device != NULL) {
        const struct device_info *facts = device_facts(pipeline->device);
        tell("device", "%d: %s, compute capability %d.%d", request->device, facts->name, facts->capability / 10,
             facts->capability % 10);
    }
#endif
    struct error error;
    const char *set;
    if (pipeline->backend == BACKEND_CPU && cpu_instruction_set(&set, &error)) /* if not, the work says why */
        tell("cpu", "instruction set %s", set);
    for (size_t i = 0; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const struct variant *variant = pipeline->plans[i].variant;
        const struct variant *other = conv_runner_up(filter, variant, &pipeline->work);
        char why[128] = "asked for";
        if (request->variant == NULL && other != NULL)
            snprintf(why, sizeof why, "expected to take %.3f ms, %s %.3f ms",
                     1e3 * conv_variant_seconds(variant, filter, &pipeline->work), other->name,
                     1e3 * conv_variant_seconds(other, filter, &pipeline->work));
        tell("variant", "%s for %s: %s; %d x %d taps, %s", variant->name, filter->name, why, filter->width,
             filter->height, filter->separable ? "separable" : "not separable");
    }
}

static void tell_times(const struct stages *stages)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (stages->milliseconds[stage] > 0) /* the CPU has no upload */
            tell("time", "%-8s %10.3f ms", stage_name((enum stage)stage), stages->milliseconds[stage]);
    tell("time", "%-8s %10.3f ms", "total", stages_total(stages));
}

/* Apply the filters to IMAGE. */
static bool convolve(const struct options *options, const struct request *request, struct image *image,
                     struct stages *stages, struct error *error)
{
    struct pipeline pipeline;
    bool done = pipeline_open(&pipeline, request, image, stages, error);
    if (!done)
        goto out;
    if (options->verbose)
        tell_pipeline(&pipeline);
    done = pipeline_run(&pipeline, image, error);
    if (pipeline.fallback.code != ERROR_NONE)
        warn(options, pipeline.fallback.message, "; the CPU takes over");
out:
    pipeline_close(&pipeline);
    return done;
}

static int run(const struct options *options)
{
    struct stages stages;
    struct error error;
    struct filter *filters = NULL;
    struct image image = {0};
    enum format format;
    size_t count, size;
    stages_begin(&stages);

    bool done = find_filters(options, &filters, &count, &error);
    if (!done)
        goto out;
    const struct request request = {
        .filters = filters,
        .count = count,
        .border = (enum border)options->border,
        .alpha = (enum alpha)options->alpha,
        .choice = (enum choice)options->choice,
        .variant = options->variant,
        .device = options->device > 0 ? options->device : 0,
        .threads = options->threads,
    };
    done = check_files(options, &error) && pipeline_check(&request, &error);
    stages_end(&stages, STAGE_PLAN);
    done = done && load(options->input, options, &stages, &image, &format, &error);
    if (!done)
        goto out;
    if (options->verbose)
        tell_image("input", path_name(options->input, "standard input"), &image, format);

    done = convolve(options, &request, &image, &stages, &error);
    if (options->format != FORMAT_UNKNOWN)
        format = (enum format)options->format;
    done = done && save(options->output, options, format, &image, &stages, &size, &error);
    if (done && options->verbose) {
        tell("output", "%s: %s, %zu bytes", path_name(options->output, "standard output"), codec_format_name(format),
             size);
        tell_times(&stages);
    }
out:
    image_free(&image);
    free(filters);
    return done ? 0 : report(&error);
}

/* Write the picture of a difference. */
static bool save_picture(const struct options *options, const struct image *expected, const struct image *actual,
                         struct error *error)
{
    struct stages stages = {0};
    struct image picture;
    size_t size;
    if (!image_difference_picture(expected, actual, &picture, error))
        return false;
    const enum format format =
        options->format != FORMAT_UNKNOWN ? (enum format)options->format : codec_format_of_path(options->picture);
    const bool done = save(options->picture, options, format, &picture, &stages, &size, error);
    image_free(&picture);
    return done;
}

/* The picture of a difference must not overwrite one of the images that it is about. */
static bool check_picture(const struct options *options, struct error *error)
{
    if (options->picture == NULL)
        return true;
    if (!check_output(options->picture, error))
        return false;
    if (codec_same_file(options->picture, options->expected) || codec_same_file(options->picture, options->actual))
        return error_set(error, ERROR_USAGE,
                         "%s is one of the images to compare; name another file for the difference picture",
                         options->picture);
    return true;
}

static void print_shapes(const struct image *expected, const struct image *actual)
{
    printf("shapes differ: expected %d x %d with %d channel%s, actual %d x %d with %d channel%s\n", expected->width,
           expected->height, expected->channels, expected->channels == 1 ? "" : "s", actual->width, actual->height,
           actual->channels, actual->channels == 1 ? "" : "s");
}

static void print_difference(const struct image *image, const struct image_difference *difference)
{
    printf("%llu of %llu pixels differ, first at x %d y %d channel %d, largest difference %d, PSNR %.2f dB\n",
           (unsigned long long)difference->pixels, (unsigned long long)image->width * (unsigned long long)image->height,
           difference->first_x, difference->first_y, difference->first_channel, difference->largest, difference->psnr);
}

/* Exit status 0 where the images are equal, 1 where they are not or cannot be compared. */
static int compare(const struct options *options)
{
    struct stages stages = {0};
    struct error error;
    struct image expected = {0}, actual = {0};
    struct image_difference difference;
    enum format format;
    int status = 1;
    if (!check_picture(options, &error) || !load(options->expected, options, &stages, &expected, &format, &error) ||
        !load(options->actual, options, &stages, &actual, &format, &error)) {
        status = report(&error);
        goto out;
    }
    image_compare(&expected, &actual, &difference);
    if (!difference.same_shape) {
        print_shapes(&expected, &actual);
    } else if (difference.pixels == 0) {
        puts("equal");
        status = 0;
    } else {
        print_difference(&expected, &difference);
        if (options->picture != NULL && !save_picture(options, &expected, &actual, &error))
            status = report(&error);
    }
out:
    image_free(&expected);
    image_free(&actual);
    return status;
}

/* One line of --list. A filter on the search path that cannot be read is warned of and left out. */
static void list_filter(const struct options *options, const char *name, int name_width, struct filter *filter)
{
    struct error error;
    if (!filter_find(name, filter, &error)) {
        warn(options, error.message, "");
        return;
    }
    char size[32];
    snprintf(size, sizeof size, "%dx%d", filter->width, filter->height);
    print_escaped(stdout, name);
    printf("%*s  %-7s  ", name_width - (int)strlen(name), "", size);
    print_escaped(stdout, filter->title);
    putchar('\n');
}

static int list(const struct options *options)
{
    struct error error;
    char **names;
    size_t count;
    if (!filter_names(&names, &count, &error))
        return report(&error);
    struct filter *filter = malloc(sizeof *filter);
    if (filter == NULL) {
        free(names);
        error_set(&error, ERROR_WORK, "not enough memory for a filter; free some");
        return report(&error);
    }
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        width = strlen(names[i]) > width ? strlen(names[i]) : width;
    for (size_t i = 0; filter_forms[i][0] != NULL; i++)
        width = strlen(filter_forms[i][0]) > width ? strlen(filter_forms[i][0]) : width;

    for (size_t i = 0; i < count; i++)
        list_filter(options, names[i], (int)width, filter);
    for (size_t i = 0; filter_forms[i][0] != NULL; i++)
        printf("%-*s  %-7s  %s\n", (int)width, filter_forms[i][0], "any", filter_forms[i][1]);
    free(filter);
    free(names);
    return 0;
}

static int list_variants(void)
{
    size_t count;
    const struct variant *table = variants(&count);
    int width = 0;
    for (size_t i = 0; i < count; i++)
        width = (int)strlen(table[i].name) > width ? (int)strlen(table[i].name) : width;

    for (size_t i = 0; i < count; i++) {
        const struct variant *v = &table[i];
        char gpu[32] = "-";
        if (v->backend == BACKEND_CUDA)
            snprintf(gpu, sizeof gpu, "sm_%d", v->capability);
        printf("%-*s  %-4s  %-5s  %-14s  %s\n", width, v->name, v->backend == BACKEND_CUDA ? "cuda" : "cpu", gpu,
               fits_name(v->fits), v->summary);
    }
    if (!pipeline_has_cuda)
        puts("This gpuconv was built without CUDA: the variants of the backend cuda cannot run.");
    return 0;
}

/* Print TEXT, whose lines may hold a file's name or title and all have an end. It is cut into them. */
static void print_lines(char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL && text != NULL;) {
        print_escaped(stdout, line);
        putchar('\n');
    }
}

static int show(const struct options *options)
{
    struct error error;
    struct filter *filters;
    size_t count;
    if (!find_filters(options, &filters, &count, &error))
        return report(&error);
    int status = 0;
    for (size_t i = 0; status == 0 && i < count; i++) {
        char *text = filter_describe(&filters[i]);
        if (text == NULL) {
            error_set(&error, ERROR_WORK, "not enough memory to describe %s; free some", filters[i].name);
            status = report(&error);
            continue;
        }
        if (i > 0)
            putchar('\n');
        print_lines(text);
        free(text);
    }
    free(filters);
    return status;
}

#ifdef GPUCONV_CUDA
static int devices(void)
{
    struct error error;
    int count;
    if (!device_count(&count, &error)) {
        fputs("no CUDA device: ", stdout);
        print_escaped(stdout, error.message);
        putchar('\n');
        return 0;
    }
    for (int i = 0; i < count; i++) {
        struct device_info info;
        if (!device_describe(i, &info, &error))
            return report(&error);
        printf("%3d  %s, compute capability %d.%d, %.1f GiB\n", i, info.name, info.capability / 10,
               info.capability % 10, (double)info.memory / (1 << 30));
    }
    return 0;
}
#else
static int devices(void)
{
    puts("no CUDA device: this gpuconv was built without CUDA");
    return 0;
}
#endif

/* What the benchmark's rows go through. */
struct bench_output {
    struct bench_writer writer;
    bool progress; /* say on standard error what is running */
};

static void show_progress(void *context, const char *what)
{
    (void)context;
    fputs("\r\033[K", stderr); /* over what was said last */
    print_escaped(stderr, what);
    fflush(stderr);
}

static void hear_row(void *context, const struct bench_row *row)
{
    struct bench_output *output = context;
    if (output->progress)
        show_progress(NULL, "");
    bench_write_row(&output->writer, row);
}

/* Measure, the benchmark being open, and write. */
static bool run_bench(const struct options *options, struct bench *bench, size_t *wrong, struct error *error)
{
    struct bench_output output = {.progress = !options->quiet && isatty(STDERR_FILENO)};
    const struct bench_listener listener = {&output, hear_row, output.progress ? show_progress : NULL};
    const enum bench_format format = options->json ? BENCH_JSON : options->csv ? BENCH_CSV : BENCH_TABLE;
    if (!bench_write_begin(&output.writer, stdout, format, bench, error))
        return false;
    const bool done = bench_run(bench, &listener, wrong, error);
    if (output.progress)
        show_progress(NULL, "");
    bench_write_end(&output.writer);
    return done;
}

static int benchmark(const struct options *options)
{
    struct bench bench = {0};
    struct error error;
    struct filter *filters = NULL;
    size_t count, wrong = 0;
    if (!find_filters(options, &filters, &count, &error))
        return report(&error);
    const struct bench_request request = {
        .sizes = options->bench_sizes,
        .size_count = options->bench_size_count,
        .filters = filters,
        .filter_count = count,
        .default_filters = options->bench_filter == NULL,
        .samples =
            {[SAMPLE_U8] = options->bench_sample != SAMPLE_F32, [SAMPLE_F32] = options->bench_sample != SAMPLE_U8},
        .border = (enum border)options->border,
        .variant = options->variant,
        .cpu = options->choice != CHOICE_CUDA,
        .cuda = options->choice != CHOICE_CPU,
        .device = options->device > 0 ? options->device : 0,
        .threads = options->threads,
    };
    bool done = bench_open(&bench, &request, &error) && run_bench(options, &bench, &wrong, &error);
    if (done && wrong > 0)
        done = error_set(&error, ERROR_WORK,
                         "%zu of the benchmark's rows differ from the reference; they are marked as wrong", wrong);
    bench_close(&bench);
    free(filters);
    return done ? 0 : report(&error);
}

static int help(void)
{
    char *text = cli_help();
    if (text == NULL) {
        struct error error;
        error_set(&error, ERROR_WORK, "not enough memory for the help; free some");
        return report(&error);
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

static int version(void)
{
    printf("gpuconv " GPUCONV_VERSION "\nbuilt %s CUDA\n", pipeline_has_cuda ? "with" : "without");
    return 0;
}

static int dispatch(const struct options *options)
{
    switch ((enum mode)options->mode) {
    case MODE_RUN:
        return run(options);
    case MODE_COMPARE:
        return compare(options);
    case MODE_LIST:
        return list(options);
    case MODE_LIST_VARIANTS:
        return list_variants();
    case MODE_SHOW:
        return show(options);
    case MODE_DEVICES:
        return devices();
    case MODE_BENCH:
        return benchmark(options);
    case MODE_HELP:
        return help();
    case MODE_VERSION:
        return version();
    case MODE_NOTHING:
        fputs(cli_usage(), stderr);
        return ERROR_USAGE;
    }
    return ERROR_USAGE;
}

/* Occupy the standard descriptors that are closed, or a file that is opened later becomes one of them. Each is opened
 * the wrong way round, so that its use still fails. */
static void occupy_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(ERROR_WORK); /* and there may be nowhere to say so */
}

/* What was printed must have arrived: a full disk shows at the latest here. */
static int finish(int status)
{
    const bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    struct error error;
    error_set(&error, ERROR_WORK, "standard output: cannot be written: %s; redirect it to where there is room",
              strerror(errno));
    return report(&error);
}

int main(int argc, char *argv[])
{
    occupy_descriptors();
    /* Writing into a closed pipe, or beyond the largest allowed file, is to fail and be reported, not to kill. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    struct options options;
    struct error error;
    if (!cli_parse(argc, argv, &options, &error))
        return report(&error);
    return finish(dispatch(&options));
}
