/* SPDX-License-Identifier: MIT
 *
 * The rows of the option table. */
#include "app/option_table.h"

#include "base/parallel.h"
#include "codec/codec.h"
#include "image/image.h"
#include "plan/border.h"
#include "variants/table.h"

#include <assert.h>
#include <stdio.h>

/* ---- Words ---- */

static const char *choice_word(int value)
{
    static const char *const words[] = {[CHOICE_AUTO] = "auto", [CHOICE_CUDA] = "cuda", [CHOICE_CPU] = "cpu"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

const char *choice_name(enum choice choice)
{
    return choice_word((int)choice);
}

static const char *border_word(int value)
{
    return value < BORDER_COUNT ? border_name((enum border)value) : NULL;
}

static const char *alpha_word(int value)
{
    static const char *const words[] = {
        [ALPHA_KEEP] = "keep", [ALPHA_PREMULTIPLY] = "premultiply", [ALPHA_FILTER] = "filter"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *depth_word(int value)
{
    return value == 8 ? "8" : value == 16 ? "16" : NULL;
}

static const char *format_word(int value)
{
    size_t count;
    const struct format *table = formats(&count);
    return value < (int)count ? table[value].suffixes[0] : NULL;
}

static const char *subsampling_word(int value)
{
    static const char *const words[] = {"keep", "444", "422", "420", "440", "411"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *sample_word(int value)
{
    return value < SAMPLE_COUNT ? sample_name((enum sample)value) : NULL;
}

/* Words of other programs that are far from ours. */
static const char *const borders_meant[][2] = {
    {"mirror", "reflect"},   {"symmetric", "reflect"}, {"clamp", "replicate"}, {"edge", "replicate"},
    {"extend", "replicate"}, {"nearest", "replicate"}, {"copy", "replicate"},  {"tile", "wrap"},
    {"repeat", "wrap"},      {"periodic", "wrap"},     {"circular", "wrap"},   {"constant", "zero"},
    {"black", "zero"},       {"fill", "zero"},         {NULL, NULL},
};

static const char *const backends_meant[][2] = {{"gpu", "cuda"}, {"nvidia", "cuda"}, {"host", "cpu"}, {NULL, NULL}};

/* ---- The table ---- */

/* The field of a KIND_WORD may be an enum. The parser writes an int there, which must have the enum's size. */
static_assert(sizeof(enum choice) == sizeof(int) && sizeof(enum border) == sizeof(int) &&
                  sizeof(enum alpha) == sizeof(int),
              "the parser writes enums as ints");

#define FIELD(name) offsetof(struct options, name)

const struct option option_table[] = {
    {.name = "border",
     .argument = "BORDER",
     .group = GROUP_FILTER,
     .help = "how to extend the image past its edges",
     .kind = KIND_WORD,
     .field = FIELD(request.border),
     .word = border_word,
     .meant = borders_meant},
    {.name = "alpha",
     .argument = "MODE",
     .group = GROUP_FILTER,
     .help = "how to treat transparency (default premultiply)",
     .kind = KIND_WORD,
     .field = FIELD(request.alpha),
     .word = alpha_word},
    {.name = "flip",
     .group = GROUP_FILTER,
     .help = "rotate the taps by 180 degrees, for true convolution",
     .kind = KIND_FLAG,
     .field = FIELD(flip)},
    {.name = "abs",
     .group = GROUP_FILTER,
     .help = "take the absolute value of each sum",
     .kind = KIND_FLAG,
     .field = FIELD(absolute)},
    {.name = "linear",
     .group = GROUP_FILTER,
     .help = "filter in linear light, assuming sRGB samples",
     .kind = KIND_FLAG,
     .field = FIELD(linear)},

    {.name = "backend",
     .argument = "BACKEND",
     .group = GROUP_BACKEND,
     .help = "where to run; auto picks the faster",
     .kind = KIND_WORD,
     .field = FIELD(request.choice),
     .word = choice_word,
     .meant = backends_meant},
    {.name = "variant",
     .argument = "NAME",
     .group = GROUP_BACKEND,
     .help = "use this variant and its backend; see --list-variants",
     .kind = KIND_VARIANT,
     .field = FIELD(request.variant)},
    /* The bound only keeps a number short. */
    {.name = "device",
     .argument = "N",
     .group = GROUP_BACKEND,
     .help = "use GPU N, or several such as 0,2, or all (default 0)",
     .kind = KIND_DEVICES,
     .field = FIELD(devices),
     .high = 999},
    /* More threads than processors gain nothing, and very many can exhaust the system. */
    {.name = "threads",
     .argument = "N",
     .group = GROUP_BACKEND,
     .help = "use N CPU threads for an image (default all)",
     .kind = KIND_NUMBER,
     .field = FIELD(threads),
     .low = 1,
     .high = PARALLEL_THREADS_MOST},

    {.name = "format",
     .argument = "FORMAT",
     .group = GROUP_FILE,
     .help = "write this format, whatever the suffix says",
     .kind = KIND_FORMAT,
     .field = FIELD(list.format),
     .word = format_word},
    {.name = "depth",
     .argument = "BITS",
     .group = GROUP_FILE,
     .help = "convert the samples to this many bits",
     .kind = KIND_WORD,
     .field = FIELD(job.codec.bits),
     .low = 8,
     .step = 8,
     .word = depth_word},
    {.name = "quality",
     .argument = "N",
     .group = GROUP_FILE,
     .help = "JPEG quality from 1 to 100, or keep",
     .kind = KIND_QUALITY,
     .field = FIELD(job.codec.quality),
     .low = 1,
     .high = 100},
    {.name = "subsampling",
     .argument = "RATIO",
     .group = GROUP_FILE,
     .help = "JPEG colour resolution",
     .kind = KIND_SUBSAMPLING,
     .field = FIELD(job.subsampling),
     .word = subsampling_word},
    {.name = "progressive",
     .group = GROUP_FILE,
     .help = "write progressive JPEGs, which are smaller but slower",
     .kind = KIND_FLAG,
     .field = FIELD(job.codec.progressive)},
    {.name = "background",
     .argument = "COLOUR",
     .group = GROUP_FILE,
     .help = "background of a JPEG, such as #ff8000 (default white)",
     .kind = KIND_COLOUR,
     .field = FIELD(job.codec.background)},
    {.name = "compression",
     .argument = "N",
     .group = GROUP_FILE,
     .help = "PNG compression effort from 0 (none) to 9",
     .kind = KIND_NUMBER,
     .field = FIELD(job.codec.compression),
     .high = 9},
    {.name = "codec",
     .argument = "NAME",
     .group = GROUP_FILE,
     .help = "read and write files with this codec; see --list-codecs",
     .kind = KIND_CODEC,
     .field = FIELD(job.codec.codec)},
    {.name = "max-pixels",
     .argument = "N",
     .group = GROUP_FILE,
     .help = "refuse images with more than N pixels, such as 50M",
     .kind = KIND_PIXELS,
     .field = FIELD(job.codec.most_pixels)},
    {.name = "strip",
     .group = GROUP_FILE,
     .help = "drop all metadata (profile, EXIF, text)",
     .kind = KIND_FLAG,
     .field = FIELD(job.strip)},
    {.name = "no-orient",
     .group = GROUP_FILE,
     .help = "do not rotate images as their EXIF orientation says",
     .kind = KIND_FLAG,
     .field = FIELD(job.keep_orientation)},
    {.name = "in-place",
     .group = GROUP_FILE,
     .help = "replace each INPUT with its result",
     .kind = KIND_FLAG,
     .field = FIELD(list.in_place)},
    {.name = "first-picture",
     .group = GROUP_FILE,
     .help = "keep only the first picture of a file, without warning",
     .kind = KIND_FLAG,
     .field = FIELD(job.first_picture)},

    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .group = GROUP_MANY,
     .use = USE_MANY,
     .help = "write the results to this folder, under the same names",
     .kind = KIND_PATH,
     .field = FIELD(list.output)},
    {.name = "recursive",
     .letter = 'r',
     .group = GROUP_MANY,
     .use = USE_MANY,
     .help = "include folders inside folders, and keep the tree",
     .kind = KIND_FLAG,
     .field = FIELD(list.recursive)},
    {.name = "files-from",
     .argument = "FILE",
     .group = GROUP_MANY,
     .use = USE_MANY,
     .compares = true,
     .help = "read more INPUTs from FILE, one per line",
     .kind = KIND_PATH,
     .field = FIELD(list.files_from)},
    {.name = "null",
     .letter = '0',
     .group = GROUP_MANY,
     .use = USE_MANY,
     .compares = true,
     .help = "names in the --files-from FILE end with a NUL byte",
     .kind = KIND_FLAG,
     .field = FIELD(list.null_separated)},
    {.name = "suffix",
     .argument = "TEXT",
     .group = GROUP_MANY,
     .use = USE_MANY,
     .help = "add TEXT to each name: a.png becomes a-blur.png",
     .kind = KIND_TEXT,
     .field = FIELD(list.suffix)},
    {.name = "jobs",
     .letter = 'j',
     .argument = "N",
     .group = GROUP_MANY,
     .use = USE_MANY,
     .compares = true,
     .help = "work on N images at a time (default: one per processor)",
     .kind = KIND_NUMBER,
     .field = FIELD(batch.workers),
     .low = 1,
     .high = PARALLEL_THREADS_MOST},
    /* The rest also goes with one image, as the heading of the group says. */
    {.name = "skip-existing",
     .group = GROUP_MANY,
     .use = USE_RUN,
     .help = "skip inputs whose output file already exists",
     .kind = KIND_FLAG,
     .field = FIELD(job.skip_existing)},
    {.name = "memory",
     .argument = "SIZE",
     .group = GROUP_MANY,
     .use = USE_RUN,
     .compares = true,
     .help = "memory limit such as 4G (default in batches: a quarter)",
     .kind = KIND_MEMORY,
     .field = FIELD(batch.memory)},
    {.name = "shard",
     .argument = "I/N",
     .group = GROUP_MANY,
     .use = USE_RUN,
     .compares = true,
     .help = "do part I of N; auto takes both from the environment",
     .kind = KIND_SHARD,
     .field = FIELD(shard)},
    {.name = "report",
     .argument = "FILE",
     .group = GROUP_MANY,
     .use = USE_RUN,
     .compares = true,
     .help = "append a line of JSON to FILE for each image",
     .kind = KIND_PATH,
     .field = FIELD(report)},
    {.name = "fail-fast",
     .group = GROUP_MANY,
     .use = USE_RUN,
     .help = "start no more files after a failure",
     .kind = KIND_FLAG,
     .field = FIELD(batch.fail_fast)},

    {.name = "verbose",
     .letter = 'v',
     .group = GROUP_TALK,
     .help = "print what was chosen and why, and how long it took",
     .kind = KIND_FLAG,
     .field = FIELD(verbose)},
    {.name = "quiet",
     .letter = 'q',
     .group = GROUP_TALK,
     .help = "print no warnings, no progress and no summary",
     .kind = KIND_FLAG,
     .field = FIELD(quiet)},
    {.name = "help",
     .letter = 'h',
     .group = GROUP_TALK,
     .help = "print this text",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_HELP},
    {.name = "version",
     .letter = 'V',
     .group = GROUP_TALK,
     .help = "print the version and whether CUDA is built in",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_VERSION},

    {.name = "list",
     .group = GROUP_QUERY,
     .help = "list the filters",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_LIST},
    {.name = "list-variants",
     .group = GROUP_QUERY,
     .help = "list the variants",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_LIST_VARIANTS},
    {.name = "list-codecs",
     .group = GROUP_QUERY,
     .help = "list the codecs",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_LIST_CODECS},
    {.name = "show",
     .argument = "FILTER",
     .group = GROUP_QUERY,
     .help = "print the taps and properties of FILTER",
     .kind = KIND_SHOW,
     .field = FIELD(filter)},
    {.name = "devices",
     .group = GROUP_QUERY,
     .help = "list the GPUs",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_DEVICES},
    {.name = "compare",
     .group = GROUP_QUERY,
     .help = "compare images or folders; see --compare --help",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_COMPARE},
    {.name = "bench",
     .group = GROUP_QUERY,
     .help = "check and time every variant; see --bench --help",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_BENCH},
    {.name = "json",
     .group = GROUP_QUERY,
     .use = USE_ANSWER,
     .help = "print the answer as JSON",
     .kind = KIND_FLAG,
     .field = FIELD(json)},

    {.name = "bench-size",
     .argument = "SIZES",
     .group = GROUP_BENCH,
     .use = USE_BENCH,
     .help = "image sizes, WIDTHxHEIGHT or WIDTHxHEIGHTxPLANES, joined by commas",
     .kind = KIND_SIZES,
     .field = FIELD(bench.sizes)},
    {.name = "bench-filter",
     .argument = "FILTER",
     .group = GROUP_BENCH,
     .use = USE_BENCH,
     .help = "filters joined by commas; int8-N, int16-N and rank1-N are N x N taps, with N from 3 to 31",
     .kind = KIND_TEXT,
     .field = FIELD(bench.filter)},
    {.name = "bench-sample",
     .argument = "TYPE",
     .group = GROUP_BENCH,
     .use = USE_BENCH,
     .help = "measure this sample type instead of uint8 and float",
     .kind = KIND_WORD,
     .field = FIELD(bench.sample),
     .word = sample_word},
    {.name = "list-bench-filters",
     .group = GROUP_BENCH,
     .help = "list the filters that are measured by default",
     .kind = KIND_MODE,
     .field = FIELD(mode),
     .low = MODE_LIST_BENCH_FILTERS},
    {.name = "csv",
     .group = GROUP_BENCH,
     .use = USE_BENCH,
     .help = "print CSV instead of a table",
     .kind = KIND_FLAG,
     .field = FIELD(bench.csv)},

    {.name = "tolerance",
     .argument = "N",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "samples may differ by N levels, of 256 or 65536",
     .kind = KIND_NUMBER,
     .field = FIELD(compare.rules.tolerance),
     .high = 65535},
    {.name = "different",
     .argument = "N",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "allow N pixels to differ by more, such as 100 or 0.1%",
     .kind = KIND_ALLOWANCE,
     .field = FIELD(compare.rules)},
    {.name = "ignore",
     .argument = "AREA",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "ignore the rectangle X,Y,WIDTH,HEIGHT; can be repeated",
     .kind = KIND_AREA,
     .field = FIELD(compare.rules)},
    {.name = "mask",
     .argument = "FILE",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "ignore the pixels that are black in this image",
     .kind = KIND_PATH,
     .field = FIELD(compare.mask)},
    {.name = "ignore-transparent",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "ignore pixels whose alpha is 0 in both images",
     .kind = KIND_FLAG,
     .field = FIELD(compare.rules.ignores_transparent)},
    {.name = "metadata",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "also compare the profile and the orientation",
     .kind = KIND_FLAG,
     .field = FIELD(compare.rules.takes_metadata)},
    {.name = "new-fails",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "exit with 1 if ACTUAL has files that EXPECTED lacks",
     .kind = KIND_FLAG,
     .field = FIELD(compare.new_fails)},
    {.name = "junit",
     .argument = "FILE",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "write the results as JUnit XML, for CI servers",
     .kind = KIND_PATH,
     .field = FIELD(compare.junit)},
    {.name = "html",
     .argument = "FILE",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "write an HTML page that shows the pictures",
     .kind = KIND_PATH,
     .field = FIELD(compare.html)},
    {.name = "update",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "copy different and new files to EXPECTED",
     .kind = KIND_FLAG,
     .field = FIELD(compare.update)},
    {.name = "delete",
     .group = GROUP_COMPARE,
     .use = USE_COMPARE,
     .help = "with --update, delete files that ACTUAL lacks",
     .kind = KIND_FLAG,
     .field = FIELD(compare.removes)},
};

const size_t option_count = sizeof option_table / sizeof *option_table;

static_assert(sizeof option_table / sizeof *option_table <= 64, "struct options has a bit for each in `given`");

const struct options option_defaults = {
    .mode = MODE_RUN,
    .request = {.choice = CHOICE_AUTO, .border = BORDER_REPLICATE, .alpha = ALPHA_PREMULTIPLY},
    .job = {.codec = {.quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION, .background = {255, 255, 255}}},
    .bench = {.sample = -1},
};

int option_next_word(const struct option *o, int value)
{
    return value + (o->step > 0 ? o->step : 1);
}

void option_join_words(const struct option *o, char *text, size_t size)
{
    size_t used = 0;
    for (int i = o->low; o->word(i) != NULL && used < size; i = option_next_word(o, i)) {
        const char *joint = i == o->low ? "" : o->word(option_next_word(o, i)) != NULL ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", joint, o->word(i));
    }
}
