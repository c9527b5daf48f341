/* SPDX-License-Identifier: MIT
 *
 * Inflating (RFC 1951) from any block on. A deflate stream has no index, and each block may repeat bytes of the 32 KiB
 * before it. But a block with its own codes can be recognised by its header, at whatever bit it begins, and its symbols
 * can be decoded before those 32 KiB are known: each byte becomes 16 bits, and a repetition of an unknown byte becomes
 * a marker, the position of that byte in the window. Markers are copied like bytes. Once the window is known, a lookup
 * replaces them.
 *
 * The decoder is stricter than the format's readers: what it accepts, all of them read to the same bytes. */
#ifndef GPUCONV_PNG_INFLATE_H
#define GPUCONV_PNG_INFLATE_H

#include "png/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INFLATE_SPARE = 320, /* bytes or symbols after the end of an output that may be written */
    INFLATE_TAIL = 64,   /* bytes at the end of a stream that are read from a copy */
    INFLATE_AHEAD = 640, /* bytes that a step needs at most, unless the stream ends before: a header has 562 */
};

/* Sizes of the tables, in bits. */
enum { INFLATE_LITERAL_BITS = 11, INFLATE_DISTANCE_BITS = 9 };

enum inflate_phase {
    INFLATE_HEADER, /* a block's header is next */
    INFLATE_CODES,  /* inside a block with codes */
    INFLATE_STORED, /* inside a stored block */
    INFLATE_END,    /* after the last block */
    INFLATE_DAMAGED,
};

/* Symbols in the table of literals, and the index whose lowest bits are their codes. */
struct inflate_entered {
    uint64_t entry;
    uint32_t index;
};

/* Scratch memory to make the table of literals: entries in the order of their bits, all of which have fewer bits than
 * the table. Single literals come first among those with the same bits. */
struct inflate_entries {
    struct inflate_entered list[1 << INFLATE_LITERAL_BITS];
    unsigned count, first[INFLATE_LITERAL_BITS + 2], literals[INFLATE_LITERAL_BITS + 1];
};

/* A decoder and its position in a stream. */
struct inflate_decoder {
    const uint8_t *bytes; /* the bytes of the stream */
    size_t size;
    bool has_more; /* more bytes follow later */
    uint64_t bit;  /* the next one */
    enum inflate_phase state;
    bool is_last;         /* the block is the last one */
    bool has_fixed_codes; /* the tables are those of blocks without codes of their own */
    size_t stored;        /* bytes left of a stored block */
    uint64_t literals[1 << INFLATE_LITERAL_BITS];
    uint32_t distances[1 << INFLATE_DISTANCE_BITS];
    struct inflate_code literal_code, distance_code;
    struct inflate_entries entries;
    uint8_t tail[2 * INFLATE_TAIL]; /* the last bytes of the stream, and zeros */
};

/* Where a decoder writes. */
struct inflate_output {
    size_t at;    /* bytes or symbols that are written */
    size_t end;   /* from here on the output is full; up to INFLATE_SPARE more may be written */
    size_t known; /* for bytes: the number of bytes before the first, up to DEFLATE_WINDOW */
};

/* Begin with the SIZE bytes of a stream at BYTES, at BIT. */
void inflate_begin(struct inflate_decoder *decoder, const uint8_t *bytes, size_t size, uint64_t bit);

/* Go on with the SIZE bytes at BYTES. The first of them has the decoder's next bit. If the stream HAS_MORE bytes, SIZE
 * is more than INFLATE_AHEAD, and decoding returns when INFLATE_AHEAD are left. Call this again then. */
void inflate_continue(struct inflate_decoder *decoder, const uint8_t *bytes, size_t size, bool has_more);

/* Find a block with its own codes that begins at FROM or later, but before TO, and is not the last one. Set the decoder
 * to the end of its header, and *START to its position. Returns false if there is none, or too much looks like one.
 * Some blocks that no usual writer makes are not found. */
bool inflate_find(struct inflate_decoder *decoder, uint64_t from, uint64_t to, uint64_t *start);

/* Decode to the bytes at OUT until the output is full, or a block ends at the bit STOP or later, or the stream ends or
 * is damaged. Symbols are the same; DEFLATE_WINDOW markers stand before the first. */
void inflate_bytes(struct inflate_decoder *decoder, uint8_t *out, struct inflate_output *output, uint64_t stop);
void inflate_symbols(struct inflate_decoder *decoder, uint16_t *out, struct inflate_output *output, uint64_t stop);

/* Fill the DEFLATE_WINDOW symbols at OUT with markers. */
void inflate_mark(uint16_t *out);

/* Replace COUNT symbols by bytes, which may overwrite them. BYTES says what each symbol is: the first 256 are
 * themselves, and the window begins at INFLATE_MARKER. */
void inflate_resolve(const uint16_t *symbols, size_t count, const uint8_t *bytes, uint8_t *out);

#endif
