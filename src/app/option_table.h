/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of options. The parser, --help and the suggestion of the nearest name walk it. One row is one option. It
 * sets one field of struct options or of a module's settings inside it. */
#ifndef GPUCONV_OPTION_TABLE_H
#define GPUCONV_OPTION_TABLE_H

#include "app/options.h"

#include <stdbool.h>
#include <stddef.h>

/* The group of --help that lists the option. */
enum group {
    GROUP_FILTER,
    GROUP_BACKEND,
    GROUP_FILE,
    GROUP_MANY,
    GROUP_TALK,
    GROUP_QUERY,
    GROUP_BENCH,
    GROUP_COMPARE,
    GROUP_DIGEST,
    GROUP_JOBS,
    GROUP_COUNT
};

/* The kind of an option's value, and so the type of its field. */
enum kind {
    KIND_FLAG,            /* no value but perhaps its keyword; a bool becomes true */
    KIND_FLAG_WORD,       /* one of the words may follow; an int or an enum: 1 without a word */
    KIND_MODE,            /* no value; an int becomes `low` */
    KIND_NUMBER,          /* an int from low to high, or the keyword for low - 1 */
    KIND_DECIMAL,         /* a number from 0 to high, but not 0, with up to six decimals; an int of millionths */
    KIND_WORD,            /* one of the words; an int or an enum */
    KIND_WORDS,           /* some of the words, joined by commas; an unsigned: 1 << the number of each */
    KIND_BITS,            /* one of the words, which are numbers; an int */
    KIND_SUBSAMPLING,     /* likewise, with or without colons; 0 for the first word */
    KIND_COLOUR,          /* white, black, #RGB or #RRGGBB; three bytes */
    KIND_FORMAT,          /* one of the words; a pointer to the format's row */
    KIND_VARIANT,         /* a variant's name; a pointer to its row */
    KIND_CODEC,           /* a codec's name; a pointer to its row */
    KIND_MODE_WITH_VALUE, /* anything; a string, which sets the mode too */
    KIND_TEXT,            /* anything; a string */
    KIND_PATH,            /* a path, which is not empty; a string */
    KIND_SIZES,           /* sizes for the benchmark */
    KIND_DEVICES,         /* indices of GPUs */
    KIND_MEMORY,          /* a number of bytes; a size_t */
    KIND_PIXELS,          /* a number of pixels; a size_t */
    KIND_SHARD,           /* one part of many; a struct shard */
    KIND_COUNT_OR_SHARE,  /* a number or a share of pixels; the `different` and `share` of a struct compare_rules */
    KIND_AREA,            /* adds a rectangle to the areas of a struct compare_rules */
    KIND_ALSO,            /* a folder, = and a filter; adds an output to a struct list_request */
};

/* The modes that use an option, and other bits of its row. ONLY_... names the mode that has the option. Another mode
 * refuses it, unless IN_... names that mode. An option without ONLY_... has no effect in a mode that IN_... does not
 * name; that warns if its group is the filter, the backend or files. MODE_RUN uses all of these. */
enum option_mode {
    ONLY_RUN = 1 << 0,     /* filtering, of one image or many */
    ONLY_MANY = 1 << 1,    /* filtering many images: with --output or --in-place */
    ONLY_BENCH = 1 << 2,   /* --bench */
    ONLY_COMPARE = 1 << 3, /* --compare */
    ONLY_DIGEST = 1 << 4,  /* --digest */
    ONLY_JOBS = 1 << 5,    /* --jobs-from */
    NOT_TAR = 1 << 6,      /* --tar refuses it: it is for files and folders */
    IN_SHOW = 1 << 7,      /* --show uses it; and so on */
    IN_BENCH = 1 << 8,     /* --bench */
    IN_READ = 1 << 9,      /* --compare and --digest, which read images */
    IN_PICTURE = 1 << 10,  /* --compare with DIFF */
    IN_FILTERED = 1 << 11, /* --digest with --filter */
    IN_JOBS = 1 << 12,     /* beside --jobs-from */
    IN_LINE = 1 << 13,     /* a line of --jobs-from. Beside --jobs-from, it holds for all lines. */
    IN_RECIPE = 1 << 14,   /* the recipe of a run: it changes the picture */
    WRITES_TEXT = 1 << 15, /* --compare writes its result there */
};

struct option {
    const char *name; /* without its dashes */
    char letter;      /* 0 if it has none. A value follows in the same argument (-j4) or the next. */
    const char *argument;
    enum group group;
    unsigned bits;     /* a sum of bits of enum option_mode */
    unsigned encoding; /* a bit of enum format_option, if the option is only for some formats */
    const char *help;
    enum kind kind;
    size_t field; /* the offset of the option's field in struct options */
    int low, high;
    const char *keyword;            /* KIND_NUMBER, and KIND_FLAG, which it may follow: or NULL */
    const char *(*word)(int value); /* the word for a value; NULL beyond the last */
};

extern const struct option option_table[];
extern const size_t option_count;

/* The option whose name is the LENGTH characters at NAME, or NULL. */
const struct option *option_find(const char *name, size_t length);

/* The option that sets the field at that offset; see OPTION. */
const struct option *option_of_field(size_t field);

/* The bits IN_... of the mode of OPTIONS. */
unsigned option_modes_of(const struct options *options);

/* The option of that letter, or NULL. */
const struct option *option_of_letter(char letter);

/* Set the field of the option O in OPTIONS, and note that it was given. VALUE is NULL if the option takes none (in
 * option_values.c). */
bool option_set(const struct option *o, const char *value, struct options *options, struct error *error);

/* The values of options that are not given. */
extern const struct options option_defaults;

/* "auto", "cuda" or "cpu". */
const char *choice_name(enum choice choice);

/* Write the words of an option, the default first, as "a, b or c" to TEXT. */
void option_join_words(const struct option *o, char *text, size_t size);

/* ---- suggest.c: what a wrong word probably means. All functions fill the error with a usage error. ---- */

#define USAGE "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT"

/* Report ARGUMENT: an unknown option with its dashes, and perhaps = and a value, or a word of --help. Returns false. */
bool suggest_option(const char *argument, struct error *error);

/* Is TEXT a number, or a percentage? */
bool suggest_is_number(const char *text);

/* Report that VALUE is none of the words of the option O. Returns false. */
bool suggest_word(const struct option *o, const char *value, struct error *error);

/* Report that O, which was typed as a letter or by its name, takes no value, but VALUE was given. Returns false. */
bool suggest_no_value(const struct option *o, bool is_letter, const char *value, struct error *error);

/* Check the COUNT operands of a run in OPTIONS, FILTER first: a word that is no filter may be an option without its
 * dashes. */
bool suggest_operands(int count, const struct options *options, struct error *error);

#endif
