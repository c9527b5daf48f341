/* SPDX-License-Identifier: MIT
 *
 * The rows of the option table. */
#include "app/option_table.h"

#include "base/parallel.h"
#include "base/text.h"
#include "codec/codec.h"
#include "image/image.h"
#include "plan/border.h"
#include "variants/table.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Words ---- */

/* A function that returns one of these words by its number, or NULL after the last. */
#define WORDS(name, ...)                                                                                               \
    static const char *name(int value)                                                                                 \
    {                                                                                                                  \
        static const char *const words[] = {__VA_ARGS__};                                                              \
        return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;                                      \
    }

WORDS(choice_word, [CHOICE_AUTO] = "auto", [CHOICE_CUDA] = "cuda", [CHOICE_CPU] = "cpu")
WORDS(alpha_word, [ALPHA_KEEP] = "keep", [ALPHA_PREMULTIPLY] = "premultiply", [ALPHA_FILTER] = "filter")
WORDS(depth_word, "8", "16")
WORDS(subsampling_word, "keep", "444", "422", "420", "440", "411")

const char *choice_name(enum choice choice)
{
    return choice_word((int)choice);
}

static const char *border_word(int value)
{
    return value < BORDER_COUNT ? border_name((enum border)value) : NULL;
}

static const char *format_word(int value)
{
    size_t count;
    const struct format *table = formats(&count);
    return value < (int)count && !table[value].is_only_read ? table[value].suffixes[0] : NULL;
}

static const char *sample_word(int value)
{
    return value < SAMPLE_COUNT ? sample_name((enum sample)value) : NULL;
}

static const char *strip_word(int value)
{
    static const char *const words[] = {
        [STRIP_NOTHING] = "none", [STRIP_MOST] = "most", [STRIP_PRIVATE] = "private", [STRIP_ALL] = "all"};
    return value <= STRIP_ALL ? words[value] : NULL;
}

WORDS(kept_word, [METADATA_ICC] = "icc", [METADATA_EXIF] = "exif", [METADATA_XMP] = "xmp", [METADATA_IPTC] = "iptc",
      [METADATA_TEXT] = "text", [KEEP_RESOLUTION] = "resolution", [KEEP_COPYRIGHT] = "copyright", [KEEP_GPS] = "gps")

/* ---- The table ---- */

/* The field of a KIND_WORD or KIND_FLAG_WORD may be an enum. The parser writes an int there, which must have the enum's
 * size. */
static_assert(sizeof(enum choice) == sizeof(int) && sizeof(enum border) == sizeof(int) &&
                  sizeof(enum alpha) == sizeof(int) && sizeof(enum metadata_level) == sizeof(int),
              "the parser writes enums as ints");

/* A row: the name of an option, its group, and its field of struct options or its mode. The help and the columns that
 * few rows need come last. */
#define FLAG(name_, group_, field_, ...)                                                                               \
    {                                                                                                                  \
        .name = (name_), .group = (group_), .kind = KIND_FLAG, .field = OPTION(field_), .help = __VA_ARGS__            \
    }
#define MODE(name_, group_, mode_, ...)                                                                                \
    {                                                                                                                  \
        .name = (name_), .group = (group_), .kind = KIND_MODE, .low = (mode_), .help = __VA_ARGS__                     \
    }
#define VALUE(name_, argument_, group_, kind_, field_, ...)                                                            \
    {                                                                                                                  \
        .name = (name_), .argument = (argument_), .group = (group_), .kind = (kind_), .field = OPTION(field_),         \
        .help = __VA_ARGS__                                                                                            \
    }

const struct option option_table[] = {
    VALUE("border", "BORDER", GROUP_FILTER, KIND_WORD, recipe.border, "how to extend the image past its edges",
          .word = border_word, .bits = IN_BENCH | IN_FILTERED | IN_LINE | IN_RECIPE),
    VALUE("alpha", "MODE", GROUP_FILTER, KIND_WORD, recipe.alpha, "how to treat transparency", .word = alpha_word,
          .bits = IN_FILTERED | IN_LINE | IN_RECIPE),
    FLAG("flip", GROUP_FILTER, flip, "rotate the taps by 180 degrees, for true convolution",
         .bits = IN_SHOW | IN_BENCH | IN_FILTERED | IN_LINE),
    FLAG("abs", GROUP_FILTER, absolute, "take the absolute value of each sum",
         .bits = IN_SHOW | IN_BENCH | IN_FILTERED | IN_LINE),
    FLAG("linear", GROUP_FILTER, recipe.linear, "filter in linear light, by the curve of the file",
         .bits = IN_FILTERED | IN_LINE | IN_RECIPE),

    VALUE("backend", "BACKEND", GROUP_BACKEND, KIND_WORD, recipe.choice, "where to run; auto picks the faster",
          .word = choice_word, .bits = IN_BENCH | IN_FILTERED | IN_LINE),
    VALUE("variant", "NAME", GROUP_BACKEND, KIND_VARIANT, recipe.variant,
          "use this variant and its backend; see --list-variants", .bits = IN_BENCH | IN_FILTERED | IN_LINE),
    /* The bound only keeps a number short. */
    VALUE("device", "N", GROUP_BACKEND, KIND_DEVICES, devices, "use GPU N, or several such as 0,2, or all (default 0)",
          .high = 999, .bits = IN_BENCH | IN_FILTERED | IN_JOBS),
    /* More threads than processors gain nothing, and very many can exhaust the system. */
    VALUE("threads", "N", GROUP_BACKEND, KIND_NUMBER, threads,
          "use N CPU threads per image (default all, in batches 1)", .low = 1, .high = PARALLEL_THREADS_MAX,
          .bits = IN_BENCH | IN_READ | IN_JOBS),

    VALUE("format", "FORMAT", GROUP_FILE, KIND_FORMAT, list.format, "write this format", .word = format_word,
          .bits = IN_PICTURE | IN_LINE | IN_RECIPE),
    VALUE("depth", "BITS", GROUP_FILE, KIND_BITS, job.codec.bits, "convert the samples to this many bits",
          .word = depth_word, .bits = IN_READ | IN_LINE | IN_RECIPE),
    VALUE("quality", "N", GROUP_FILE, KIND_NUMBER, job.codec.quality, "quality from 1 to 100, or keep", .low = 1,
          .high = 100, .keyword = "keep", .bits = IN_PICTURE | IN_LINE | IN_RECIPE, .encoding = FORMAT_QUALITY),
    FLAG("lossless", GROUP_FILE, job.codec.lossless, "write lossless WebPs and AVIFs",
         .bits = IN_PICTURE | IN_LINE | IN_RECIPE, .encoding = FORMAT_LOSSLESS),
    VALUE("subsampling", "RATIO", GROUP_FILE, KIND_SUBSAMPLING, job.codec.subsampling, "JPEG colour resolution",
          .word = subsampling_word, .bits = IN_LINE | IN_RECIPE, .encoding = FORMAT_SUBSAMPLING),
    FLAG("progressive", GROUP_FILE, job.codec.progressive, "write progressive JPEGs, which are smaller but slower",
         .bits = IN_PICTURE | IN_LINE | IN_RECIPE, .encoding = FORMAT_PROGRESSIVE),
    VALUE("background", "COLOUR", GROUP_FILE, KIND_COLOUR, job.codec.background,
          "background if alpha is lost, as #ff8000 (default white)", .bits = IN_LINE | IN_RECIPE,
          .encoding = FORMAT_BACKGROUND),
    VALUE("compression", "N", GROUP_FILE, KIND_NUMBER, job.codec.compression,
          "compression effort 0 (none) to 9, or fast", .high = 9, .keyword = "fast",
          .bits = IN_PICTURE | IN_LINE | IN_RECIPE, .encoding = FORMAT_COMPRESSION),
    VALUE("codec", "NAME", GROUP_FILE, KIND_CODEC, job.codec.codec,
          "read and write files with this codec; see --list-codecs", .bits = IN_READ | IN_LINE),
    VALUE("max-pixels", "N", GROUP_FILE, KIND_PIXELS, job.codec.max_pixels,
          "refuse images with more than N pixels, such as 50M", .bits = IN_READ | IN_LINE),
    VALUE("page", "N", GROUP_FILE, KIND_NUMBER, job.codec.page, "read picture N of a TIFF, WebP, HEIC or AVIF",
          .low = 1, .high = 1 << 16, .bits = IN_READ | IN_LINE | IN_RECIPE),
    FLAG("pages", GROUP_FILE, list.pages, "filter all pages, to name-001.png and so on or one TIFF",
         .bits = ONLY_RUN | NOT_TAR),
    {.name = "strip",
     .group = GROUP_FILE,
     .kind = KIND_FLAG_WORD,
     .field = OPTION(job.strip.level),
     .help = "drop metadata (most without a word)",
     .word = strip_word,
     .bits = IN_LINE | IN_RECIPE},
    VALUE("keep", "WORDS", GROUP_FILE, KIND_WORDS, job.strip.kept, "keep these nevertheless, joined by commas",
          .word = kept_word, .bits = IN_LINE | IN_RECIPE),
    FLAG("keep-text", GROUP_FILE, job.keep_text, "also keep long texts, which may contain a picture",
         .bits = IN_LINE | IN_RECIPE),
    FLAG("no-orient", GROUP_FILE, job.keep_orientation, "do not rotate images as their EXIF orientation says",
         .bits = IN_FILTERED | IN_LINE | IN_RECIPE),
    FLAG("in-place", GROUP_FILE, list.in_place, "replace each INPUT with its result; there is no OUTPUT",
         .bits = NOT_TAR),
    FLAG("first-picture", GROUP_FILE, job.first_picture, "keep only the first picture of a file, without warning",
         .bits = IN_READ | IN_LINE),

    VALUE("output", "DIR", GROUP_MANY, KIND_PATH, list.output, "write the results to this folder, under the same names",
          .letter = 'o', .bits = ONLY_MANY | NOT_TAR),
    VALUE("also", "DIR=FILTER", GROUP_MANY, KIND_ALSO, list.also, "write the results of FILTER, too: to the folder DIR",
          .bits = ONLY_MANY | NOT_TAR),
    FLAG("recursive", GROUP_MANY, list.recursive, "include subfolders, and keep the tree", .letter = 'r',
         .bits = ONLY_MANY | NOT_TAR),
    VALUE("files-from", "FILE", GROUP_MANY, KIND_PATH, list.files_from, "read more INPUTs from FILE, one per line",
          .bits = ONLY_MANY | IN_READ | NOT_TAR),
    FLAG("null", GROUP_MANY, list.null_separated, "names in the --files-from FILE end with a NUL byte", .letter = '0',
         .bits = ONLY_MANY | IN_READ),
    VALUE("suffix", "TEXT", GROUP_MANY, KIND_TEXT, list.suffix, "add TEXT to each name: a.png becomes a-blur.png",
          .bits = ONLY_MANY),
    FLAG("keep-suffix", GROUP_MANY, list.keeps_suffix, "with --format, a.jpg becomes a.jpg.webp", .bits = ONLY_MANY),
    VALUE("jobs", "N", GROUP_MANY, KIND_NUMBER, batch.workers,
          "work on N images at a time (default: one per processor)", .letter = 'j',
          .bits = ONLY_MANY | IN_READ | IN_JOBS, .low = 1, .high = PARALLEL_THREADS_MAX),
    /* The rest also goes with one image, as the heading of the group says. */
    FLAG("skip-existing", GROUP_MANY, job.skip_existing, "skip inputs whose output file already exists",
         .bits = ONLY_RUN | NOT_TAR | IN_LINE),
    VALUE("memory", "SIZE", GROUP_MANY, KIND_MEMORY, batch.memory, "memory limit for all images together, such as 4G",
          .bits = ONLY_RUN | IN_READ | IN_JOBS),
    VALUE("shard", "I/N", GROUP_MANY, KIND_SHARD, shard, "do part I of N; auto takes both from the environment",
          .bits = ONLY_RUN | IN_READ | NOT_TAR),
    VALUE("report", "FILE", GROUP_MANY, KIND_PATH, report, "append a line of JSON to FILE for each image",
          .bits = ONLY_RUN | IN_READ | WRITES_TEXT),
    FLAG("fail-fast", GROUP_MANY, batch.fail_fast, "start no more files after a failure", .bits = ONLY_RUN),

    FLAG("tar", GROUP_MANY, tar, "filter the images of a tar archive, into another one", .bits = ONLY_RUN),
    FLAG("images-only", GROUP_MANY, images_only, "skip members of a --tar archive that are not images",
         .bits = ONLY_RUN),
    FLAG("keep-failed", GROUP_MANY, keep_failed, "keep images that fail unchanged in the --tar archive",
         .bits = ONLY_RUN),

    FLAG("verbose", GROUP_TALK, verbose, "print what was chosen and why, and how long it took", .letter = 'v',
         .bits = IN_JOBS),
    FLAG("quiet", GROUP_TALK, quiet, "print no warnings, no progress and no summary", .letter = 'q', .bits = IN_JOBS),
    MODE("help", GROUP_TALK, MODE_HELP, "print help; after it, a WORD that it is about", .letter = 'h'),
    MODE("version", GROUP_TALK, MODE_VERSION, "print the version and what is built in", .letter = 'V'),

    MODE("list", GROUP_QUERY, MODE_LIST, "list the filters, or those about a word"),
    MODE("list-variants", GROUP_QUERY, MODE_LIST_VARIANTS, "list the variants"),
    MODE("list-codecs", GROUP_QUERY, MODE_LIST_CODECS, "list the codecs"),
    VALUE("show", "FILTER", GROUP_QUERY, KIND_MODE_WITH_VALUE, filter, "print the taps and properties of FILTER",
          .low = MODE_SHOW),
    MODE("devices", GROUP_QUERY, MODE_DEVICES, "list the GPUs, or say why there is none"),
    MODE("compare", GROUP_QUERY, MODE_COMPARE, "compare images or folders; see --help compare"),
    MODE("digest", GROUP_QUERY, MODE_DIGEST, "print digests of samples; see --help digest"),
    MODE("bench", GROUP_QUERY, MODE_BENCH, "check and time every variant; see --help bench"),
    MODE("conformance", GROUP_QUERY, MODE_CONFORMANCE, "check that this build makes the defined pixels"),
    VALUE("jobs-from", "FILE", GROUP_QUERY, KIND_MODE_WITH_VALUE, jobs_from, "do the jobs in FILE; see --help jobs",
          .low = MODE_JOBS, .bits = IN_JOBS),
    FLAG("json", GROUP_QUERY, json, "print the answer as JSON", .bits = WRITES_TEXT),

    VALUE("bench-size", "SIZES", GROUP_BENCH, KIND_SIZES, bench.sizes,
          "image sizes, WIDTHxHEIGHT or WIDTHxHEIGHTxPLANES, joined by commas", .bits = ONLY_BENCH),
    VALUE("bench-filter", "FILTER", GROUP_BENCH, KIND_TEXT, bench.filter,
          "filters joined by commas; int8-N, int16-N and rank1-N are N x N taps, with N from 3 to 31",
          .bits = ONLY_BENCH),
    VALUE("bench-sample", "TYPE", GROUP_BENCH, KIND_WORD, bench.sample,
          "measure this sample type instead of uint8 and float", .bits = ONLY_BENCH, .word = sample_word),
    MODE("list-bench-filters", GROUP_BENCH, MODE_LIST_BENCH_FILTERS, "list the filters that are measured by default"),
    FLAG("csv", GROUP_BENCH, bench.csv, "print CSV instead of a table", .bits = ONLY_BENCH),

    VALUE("tolerance", "N", GROUP_COMPARE, KIND_NUMBER, compare.rules.tolerance,
          "samples may differ by N levels, of 256 or 65536", .bits = ONLY_COMPARE | IN_LINE, .high = 65535),
    VALUE("tolerance-yiq", "T", GROUP_COMPARE, KIND_DECIMAL, compare.rules.yiq,
          "colours may differ by T, up to 1, as eyes see it; pixelmatch's threshold", .bits = ONLY_COMPARE | IN_LINE,
          .high = 1),
    VALUE("different", "N", GROUP_COMPARE, KIND_COUNT_OR_SHARE, compare.rules.different,
          "allow N pixels to differ by more, such as 100 or 0.1%", .bits = ONLY_COMPARE | IN_LINE),
    VALUE("min-psnr", "DB", GROUP_COMPARE, KIND_DECIMAL, compare.rules.lowest[LIMIT_PSNR],
          "allow any differences that leave a PSNR of DB, such as 40", .bits = ONLY_COMPARE | IN_LINE, .high = 200),
    VALUE("min-ssim", "VALUE", GROUP_COMPARE, KIND_DECIMAL, compare.rules.lowest[LIMIT_SSIM],
          "the same for the SSIM of the whole image, such as 0.995", .bits = ONLY_COMPARE | IN_LINE, .high = 1),
    VALUE("min-local-ssim", "VALUE", GROUP_COMPARE, KIND_DECIMAL, compare.rules.lowest[LIMIT_LOCAL_SSIM],
          "the same for the SSIM of each window of 11 x 11 pixels", .bits = ONLY_COMPARE | IN_LINE, .high = 1),
    VALUE("ignore", "AREA", GROUP_COMPARE, KIND_AREA, compare.rules.areas,
          "ignore the rectangle X,Y,WIDTH,HEIGHT; can be repeated", .bits = ONLY_COMPARE | IN_LINE),
    VALUE("mask", "FILE", GROUP_COMPARE, KIND_PATH, compare.mask,
          "ignore the pixels that are black in this image; a folder has masks by name", .bits = ONLY_COMPARE | IN_LINE),
    FLAG("ignore-transparent", GROUP_COMPARE, compare.rules.ignores_transparent,
         "ignore pixels whose alpha is 0 in both images", .bits = ONLY_COMPARE | IN_LINE),
    FLAG("ignore-antialiasing", GROUP_COMPARE, compare.rules.ignores_antialiasing,
         "ignore pixels that differ only because edges were smoothed in another way", .bits = ONLY_COMPARE | IN_LINE),
    FLAG("strict-channels", GROUP_COMPARE, compare.rules.strict_channels,
         "opaque alpha, and grey as three equal channels, are a difference", .bits = ONLY_COMPARE | IN_LINE),
    FLAG("metadata", GROUP_COMPARE, compare.rules.takes_metadata, "also compare the metadata",
         .bits = ONLY_COMPARE | IN_LINE),
    FLAG("new-fails", GROUP_COMPARE, compare.new_fails, "exit with 1 if ACTUAL has files that EXPECTED lacks",
         .bits = ONLY_COMPARE),
    VALUE("junit", "FILE", GROUP_COMPARE, KIND_PATH, compare.junit, "write the results as JUnit XML, for CI servers",
          .bits = ONLY_COMPARE | WRITES_TEXT),
    VALUE("html", "FILE", GROUP_COMPARE, KIND_PATH, compare.html, "write an HTML page with the pictures",
          .bits = ONLY_COMPARE | WRITES_TEXT),
    VALUE("markdown", "FILE", GROUP_COMPARE, KIND_PATH, compare.markdown,
          "write a summary for a comment on a pull request", .bits = ONLY_COMPARE | WRITES_TEXT),
    FLAG("update", GROUP_COMPARE, compare.update,
         "copy different and new files to EXPECTED; --update all also renews tolerated ones", .bits = ONLY_COMPARE,
         .keyword = "all"),
    FLAG("delete", GROUP_COMPARE, compare.removes, "with --update, delete files that ACTUAL lacks",
         .bits = ONLY_COMPARE),

    VALUE("filter", "FILTER", GROUP_DIGEST, KIND_TEXT, filter, "digest the filtered images; write none",
          .bits = ONLY_DIGEST | IN_LINE),
    VALUE("check", "FILE", GROUP_DIGEST, KIND_MODE_WITH_VALUE, check,
          "compare with the digests in FILE; --quiet names only those that are wrong", .low = MODE_DIGEST),

    FLAG("ordered", GROUP_JOBS, ordered, "answer the lines in their order, not as the jobs finish",
         .bits = ONLY_JOBS | IN_JOBS),
};

const size_t option_count = sizeof option_table / sizeof *option_table;

static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX, "struct options has an element for each");

const struct option *option_find(const char *name, size_t length)
{
    for (const struct option *o = option_table; o < option_table + option_count; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

const struct option *option_of_field(size_t field)
{
    const struct option *o = option_table;
    for (; o->field != field || o->kind == KIND_MODE; o++)
        assert(o + 1 < option_table + option_count);
    return o;
}

unsigned option_modes_of(const struct options *options)
{
    switch ((enum mode)options->mode) {
    case MODE_SHOW:
        return IN_SHOW;
    case MODE_BENCH:
        return IN_BENCH;
    case MODE_COMPARE:
        return options->picture != NULL ? IN_READ | IN_PICTURE : IN_READ;
    case MODE_DIGEST:
        return options->filter != NULL ? IN_READ | IN_FILTERED : IN_READ;
    case MODE_JOBS:
        return IN_JOBS | IN_LINE;
    default:
        return 0;
    }
}

const char *options_mode_name(int mode)
{
    for (const struct option *o = option_table; o < option_table + option_count; o++)
        if ((o->kind == KIND_MODE || o->kind == KIND_MODE_WITH_VALUE) && o->low == mode)
            return o->name;
    return NULL;
}

const struct option *option_of_letter(char letter)
{
    for (const struct option *o = option_table; letter != '\0' && o < option_table + option_count; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

const struct options option_defaults = {
    .mode = MODE_RUN,
    .recipe = {.choice = CHOICE_AUTO, .border = BORDER_REPLICATE, .alpha = ALPHA_PREMULTIPLY},
    .job = {.codec = {.quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION, .background = {255, 255, 255}}},
    .bench = {.sample = -1},
};

void option_join_words(const struct option *o, char *text, size_t size)
{
    const int standard = o->kind == KIND_WORD ? *(const int *)((const char *)&option_defaults + o->field) : 0;
    const char *first = o->word(standard > 0 ? standard : 0);
    snprintf(text, size, "%s", first);
    for (int i = 0; o->word(i) != NULL; i++)
        if (o->word(i) != first)
            text_add_word(text, size, o->word(i), o->word(i + 1) == NULL ? " or " : NULL);
}
