/* SPDX-License-Identifier: MIT
 *
 * Helpers take parts before the chain needs them. They look for the first block that begins in a part, and decode to
 * symbols from there, up to the first block that begins in the next part. The head is the position in the stream up to
 * which all is known. A part that begins where the head is joins the chain: its window is known then, and so is that of
 * the part after it; the head moves to its end. So what joins is proven, block by block, and a wrong guess costs time
 * only. Then a helper replaces the part's symbols by bytes.
 *
 *   free -> begun -> decoded -> joined -> resolving -> ready -> used -> free         the state of a part's slot
 *                \-> missed
 *
 * The thread that asks for bytes does what nobody has begun. Where the next part does not begin at the head, it decodes
 * bytes from the head up to the part's beginning, or up to the part after it. That part is missed: there was no block
 * with its own codes, or a block ends beyond it. If too many are missed, helpers give up.
 *
 * Parts from `current` up to the one before `joined` are in the chain, and not used up. */
#include "png/png.h"

#include "png/inflate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum slot_state {
    SLOT_FREE,
    SLOT_BEGUN,
    SLOT_DROPPED, /* begun, but nobody wants it any more */
    SLOT_DECODED,
    SLOT_MISSED,
    SLOT_JOINED,
    SLOT_RESOLVING,
    SLOT_READY,
    SLOT_USED,
};

enum {
    BYTES = 1 << 18,      /* that are decoded at once at the head */
    MISSED_MAX = 8,       /* parts, besides those that joined, before helpers give up */
    TABLE = 1 << 16,      /* bytes for all symbols: 256 of them, a gap, and the window */
    PART_BYTES = 1 << 19, /* bytes of a usual part, inflated */
    PART_MIN = 1 << 16,
    PART_MAX = 1 << 18,
};

struct slot {
    enum slot_state state;
    uint64_t start; /* the bit at which its first block begins */
    size_t count;   /* symbols, which become bytes */
    struct inflate_decoder decoder;
    uint8_t *table;    /* TABLE bytes: what each symbol is; the symbols are in the same memory */
    uint16_t *symbols; /* a window of markers before, and INFLATE_SPARE after them */
};

struct inflate_parts {
    const uint8_t *stream;
    size_t size, count; /* bytes; parts */
    struct inflate_cut cut;
    pthread_mutex_t mutex; /* for all that follows, but the bytes */
    pthread_cond_t changed;
    size_t current, joined; /* the first parts that are not used up, and not in the chain */
    size_t begun;           /* the first part after all that helpers have begun */
    size_t missed, fitting; /* parts: without and with a beginning that fitted */
    bool is_busy;           /* the head decodes bytes */
    struct inflate_decoder head;
    uint8_t window[DEFLATE_WINDOW]; /* before the head */
    size_t known;                   /* bytes of the window that there are */

    /* Only the thread that asks for bytes uses these three. */
    const uint8_t *bytes; /* that are next */
    size_t left;
    uint8_t plain[DEFLATE_WINDOW + BYTES + INFLATE_SPARE]; /* those that the head decodes, after a window */
    struct slot slots[];
};

/* ---- Sizes ---- */

struct inflate_cut inflate_usual_cut(size_t size, size_t bytes, int threads)
{
    const double ratio = (double)bytes / (double)size, part = PART_BYTES / ratio;
    return (struct inflate_cut){
        .part = part < PART_MIN   ? PART_MIN
                : part > PART_MAX ? PART_MAX
                                  : (size_t)part,
        .symbols = 2 * PART_BYTES,
        .slots = threads + threads / 4 + 2,
    };
}

static size_t symbols_bytes(const struct inflate_cut *cut)
{
    return (DEFLATE_WINDOW + cut->symbols + INFLATE_SPARE) * sizeof(uint16_t);
}

size_t inflate_parts_need(const struct inflate_cut *cut)
{
    return sizeof(struct inflate_parts) + (size_t)cut->slots * (sizeof(struct slot) + TABLE + symbols_bytes(cut));
}

struct inflate_parts *inflate_parts_open(const uint8_t *stream, size_t size, const struct inflate_cut *cut)
{
    struct inflate_parts *parts = calloc(1, sizeof *parts + (size_t)cut->slots * sizeof *parts->slots);
    if (parts == NULL)
        return NULL;
    parts->stream = stream;
    parts->size = size;
    parts->count = (size + cut->part - 1) / cut->part;
    parts->cut = *cut;
    pthread_mutex_init(&parts->mutex, NULL);
    pthread_cond_init(&parts->changed, NULL);
    inflate_begin(&parts->head, stream, size, 0);
    return parts;
}

void inflate_parts_free(struct inflate_parts *parts)
{
    if (parts == NULL)
        return;
    for (int i = 0; i < parts->cut.slots; i++)
        free(parts->slots[i].table);
    pthread_mutex_destroy(&parts->mutex);
    pthread_cond_destroy(&parts->changed);
    free(parts);
}

static struct slot *slot_of_part(struct inflate_parts *parts, size_t part)
{
    return &parts->slots[part % (size_t)parts->cut.slots];
}

/* The bit at which PART begins. */
static uint64_t part_bit(const struct inflate_parts *parts, size_t part)
{
    return part < parts->count ? 8 * (uint64_t)parts->cut.part * part : UINT64_MAX;
}

/* ---- The chain; under the mutex ---- */

/* Move the window over COUNT bytes. Returns the position in it of their last ones, *ADDED in number. */
static uint8_t *move_known_window(struct inflate_parts *parts, size_t count, size_t *added)
{
    *added = count < DEFLATE_WINDOW ? count : DEFLATE_WINDOW;
    memmove(parts->window, parts->window + *added, DEFLATE_WINDOW - *added);
    parts->known = parts->known + *added < DEFLATE_WINDOW ? parts->known + *added : DEFLATE_WINDOW;
    return parts->window + DEFLATE_WINDOW - *added;
}

/* Let the next parts join, as long as they fit. A marker for a byte before the stream's first would be damage, so the
 * window must be known as a whole. */
static void join_parts(struct inflate_parts *parts)
{
    while (!parts->is_busy && parts->joined < parts->count && parts->known == DEFLATE_WINDOW) {
        struct slot *slot = slot_of_part(parts, parts->joined);
        if (slot->state != SLOT_DECODED || parts->head.state != INFLATE_HEADER || parts->head.bit != slot->start)
            break;
        size_t added;
        memcpy(slot->table + INFLATE_MARKER, parts->window, DEFLATE_WINDOW);
        uint8_t *last = move_known_window(parts, slot->count, &added);
        inflate_resolve(slot->symbols + DEFLATE_WINDOW + slot->count - added, added, slot->table, last);
        parts->head = slot->decoder;
        slot->state = SLOT_JOINED;
        parts->joined++;
        parts->fitting++;
    }
}

/* Go on without the next part. */
static void skip_part(struct inflate_parts *parts)
{
    struct slot *slot = slot_of_part(parts, parts->joined);
    if (slot->state != SLOT_DROPPED)
        slot->state = slot->state == SLOT_BEGUN ? SLOT_DROPPED : SLOT_FREE;
    parts->current = ++parts->joined;
}

/* ---- Helpers ---- */

static bool prepare_slot(struct slot *slot, const struct inflate_cut *cut)
{
    if (slot->table != NULL)
        return true;
    slot->table = malloc(TABLE + symbols_bytes(cut));
    if (slot->table == NULL)
        return false;
    slot->symbols = (uint16_t *)(void *)(slot->table + TABLE);
    for (int i = 0; i < 256; i++)
        slot->table[i] = (uint8_t)i;
    inflate_mark(slot->symbols);
    return true;
}

/* Find and decode PART. */
static bool decode_part(struct inflate_parts *parts, struct slot *slot, size_t part)
{
    struct inflate_output output = {.end = parts->cut.symbols};
    if (!prepare_slot(slot, &parts->cut))
        return false;
    inflate_begin(&slot->decoder, parts->stream, parts->size, 0);
    const uint64_t from = part_bit(parts, part), next = part_bit(parts, part + 1), end = 8 * (uint64_t)parts->size;
    if (!inflate_find(&slot->decoder, from, next < end ? next : end, &slot->start))
        return false;
    inflate_symbols(&slot->decoder, slot->symbols + DEFLATE_WINDOW, &output, next);
    slot->count = output.at;
    return true;
}

static void begin_part(struct inflate_parts *parts, size_t part)
{
    struct slot *slot = slot_of_part(parts, part);
    slot->state = SLOT_BEGUN;
    pthread_mutex_unlock(&parts->mutex);
    const bool found = decode_part(parts, slot, part);
    pthread_mutex_lock(&parts->mutex);
    slot->state = slot->state == SLOT_DROPPED ? SLOT_FREE : found ? SLOT_DECODED : SLOT_MISSED;
    join_parts(parts);
    pthread_cond_broadcast(&parts->changed);
}

/* Replace the symbols of a part that has joined by bytes, in the memory of the symbols. */
static void resolve_part(struct inflate_parts *parts, struct slot *slot)
{
    slot->state = SLOT_RESOLVING;
    pthread_mutex_unlock(&parts->mutex);
    uint16_t *symbols = slot->symbols + DEFLATE_WINDOW;
    inflate_resolve(symbols, slot->count, slot->table, (uint8_t *)symbols);
    pthread_mutex_lock(&parts->mutex);
    slot->state = SLOT_READY;
    pthread_cond_broadcast(&parts->changed);
}

/* Take a piece of work: bytes that will be wanted soonest come first. The part at the head is left to the thread that
 * asks for bytes. */
static bool take_work(struct inflate_parts *parts)
{
    for (size_t part = parts->current; part < parts->joined; part++)
        if (slot_of_part(parts, part)->state == SLOT_JOINED) {
            resolve_part(parts, slot_of_part(parts, part));
            return true;
        }
    const size_t part = parts->begun > parts->joined ? parts->begun : parts->joined + 1;
    const bool has_ended = !parts->is_busy && parts->head.state >= INFLATE_END;
    if (has_ended || part >= parts->count || part >= parts->current + (size_t)parts->cut.slots ||
        slot_of_part(parts, part)->state != SLOT_FREE || parts->missed > parts->fitting + MISSED_MAX)
        return false;
    parts->begun = part + 1;
    begin_part(parts, part);
    return true;
}

bool inflate_parts_help(struct inflate_parts *parts)
{
    pthread_mutex_lock(&parts->mutex);
    const bool done = take_work(parts);
    pthread_mutex_unlock(&parts->mutex);
    return done;
}

/* ---- The thread that asks for bytes ---- */

/* Decode bytes at the head, until a block ends at STOP or later. */
static void decode_bytes(struct inflate_parts *parts, uint64_t stop)
{
    struct inflate_output output = {.end = BYTES, .known = parts->known};
    parts->is_busy = true;
    pthread_mutex_unlock(&parts->mutex);
    memcpy(parts->plain, parts->window, DEFLATE_WINDOW);
    inflate_bytes(&parts->head, parts->plain + DEFLATE_WINDOW, &output, stop);
    pthread_mutex_lock(&parts->mutex);
    parts->is_busy = false;
    size_t added;
    uint8_t *last = move_known_window(parts, output.at, &added);
    memcpy(last, parts->plain + DEFLATE_WINDOW + output.at - added, added);
    parts->bytes = parts->plain + DEFLATE_WINDOW;
    parts->left = output.at;
}

static void help_part_or_wait(struct inflate_parts *parts)
{
    if (!take_work(parts))
        pthread_cond_wait(&parts->changed, &parts->mutex);
}

/* Move the head, which is where the last part in the chain ends. */
static void move_head(struct inflate_parts *parts)
{
    const size_t part = parts->joined;
    const uint64_t begin = part_bit(parts, part), next = part_bit(parts, part + 1), head = parts->head.bit;
    const struct slot *slot = slot_of_part(parts, part);
    if (head < begin || parts->head.state != INFLATE_HEADER) {
        decode_bytes(parts, begin);
    } else if (slot->state == SLOT_BEGUN && head < next) {
        help_part_or_wait(parts);
    } else if (slot->state == SLOT_DECODED && head < slot->start) {
        decode_bytes(parts, slot->start);
    } else {
        parts->missed += slot->state == SLOT_DECODED || slot->state == SLOT_MISSED;
        skip_part(parts);
    }
}

/* Find the next bytes. Returns false at the end. */
static bool find_bytes(struct inflate_parts *parts)
{
    while (parts->left == 0) {
        struct slot *slot = slot_of_part(parts, parts->current);
        join_parts(parts);
        if (parts->current == parts->joined && parts->head.state >= INFLATE_END)
            return false;
        if (parts->current == parts->joined) {
            move_head(parts);
        } else if (slot->state == SLOT_JOINED) {
            resolve_part(parts, slot);
        } else if (slot->state == SLOT_RESOLVING) {
            help_part_or_wait(parts);
        } else if (slot->state == SLOT_READY) {
            slot->state = SLOT_USED;
            parts->bytes = (const uint8_t *)(slot->symbols + DEFLATE_WINDOW);
            parts->left = slot->count;
        } else {
            slot->state = SLOT_FREE;
            parts->current++;
        }
    }
    return true;
}

size_t inflate_parts_next(struct inflate_parts *parts, uint8_t *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        if (parts->left == 0) {
            pthread_mutex_lock(&parts->mutex);
            const bool found = find_bytes(parts);
            pthread_mutex_unlock(&parts->mutex);
            if (!found)
                break;
        }
        const size_t some = size - done < parts->left ? size - done : parts->left;
        memcpy(out + done, parts->bytes, some);
        parts->bytes += some;
        parts->left -= some;
        done += some;
    }
    return done;
}

size_t inflate_parts_end(struct inflate_parts *parts)
{
    pthread_mutex_lock(&parts->mutex);
    const bool has_ended = parts->current == parts->joined && parts->left == 0 && parts->head.state == INFLATE_END;
    const size_t end = has_ended ? (size_t)((parts->head.bit + 7) / 8) : 0;
    pthread_mutex_unlock(&parts->mutex);
    return end;
}
