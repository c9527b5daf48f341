/* SPDX-License-Identifier: MIT */
#include "jpeg/index.h"

#include "base/parallel.h"
#include "jpeg/decode_loops.h"

#include <stdlib.h>

enum { MARK_BITS = 4096 }; /* bits from a mark in a chunk to the next, about; rows are found from the marks */

/* A position between two blocks of a chunk. */
struct mark {
    uint32_t bit, blocks; /* bits and blocks since the chunk's first position */
    uint16_t sums[JPEG_MCU_BLOCKS_MAX];
};

/* A part of the data, from the first block that begins in it to the first that does not. */
struct chunk {
    struct jpeg_cursor first, last; /* the blocks and sums of `last` are those of the chunk */
    bool is_walked, is_broken;      /* `last` stands before a broken block */
    struct mark *marks;
    size_t mark_count;

    /* Once the chunks before it are known. */
    uint64_t blocks; /* before it */
    int phase_shift; /* what its phases lack */
    uint16_t dc[JPEG_COMPONENTS_MAX];
};

const struct jpeg_chunking jpeg_usual_chunking = {.chunk = 1 << 19, .lead = 1 << 14};

struct index_builder {
    struct jpeg_index *index;
    struct jpeg_chunking chunking;
    uint64_t bits, blocks; /* bits of the data, and blocks of the picture */
    struct chunk *chunks;
    struct mark *marks;
    size_t chunk_count, marks_each;
    atomic_bool is_damaged;
};

/* ---- Chunks ---- */

static uint64_t chunk_begin(const struct index_builder *builder, size_t number)
{
    const uint64_t begin = (uint64_t)number * builder->chunking.chunk;
    return begin < builder->bits ? begin : builder->bits;
}

/* Walk over a chunk, from its first position on, which is known or guessed. */
static void walk_chunk(struct index_builder *builder, struct chunk *chunk, size_t number)
{
    const uint64_t end = chunk_begin(builder, number + 1);
    struct jpeg_cursor *cursor = &chunk->last;
    uint64_t failed;
    *cursor = chunk->first;
    chunk->is_walked = true;
    chunk->is_broken = false;
    chunk->mark_count = 0;
    while (!chunk->is_broken && cursor->bit < end) {
        struct mark *mark = &chunk->marks[chunk->mark_count++];
        mark->bit = (uint32_t)(cursor->bit - chunk->first.bit);
        mark->blocks = (uint32_t)cursor->blocks;
        memcpy(mark->sums, cursor->sums, sizeof mark->sums);
        const uint64_t stop = cursor->bit + MARK_BITS < end ? cursor->bit + MARK_BITS : end;
        chunk->is_broken =
            !builder->index->loops->walk(builder->index, cursor, UINT64_MAX, stop, builder->bits, &failed);
    }
}

/* Guess the state before a chunk, find its first position, and walk over it. If codes are wrong, the guess was wrong:
 * go on after them. */
static void guess_chunk(void *context, int64_t number, int thread)
{
    struct index_builder *builder = context;
    struct chunk *chunk = &builder->chunks[number];
    const uint64_t begin = chunk_begin(builder, (size_t)number), lead = builder->chunking.lead;
    struct jpeg_cursor cursor = {.bit = begin > lead ? begin - lead : 0};
    uint64_t failed;
    (void)thread;
    while (!builder->index->loops->walk(builder->index, &cursor, UINT64_MAX, begin, builder->bits, &failed) &&
           failed < begin)
        cursor = (struct jpeg_cursor){.bit = failed + 1};
    chunk->first = (struct jpeg_cursor){.bit = cursor.bit, .phase = cursor.phase};
    if (cursor.bit >= begin)
        walk_chunk(builder, chunk, (size_t)number);
}

/* Add SUMS, by numbers in the MCU that are PHASE_SHIFT too low, to the predictors. */
static void add_sums(const struct jpeg_layout *layout, const uint16_t *sums, int phase_shift, uint16_t *dc)
{
    for (int i = 0; i < layout->mcu_blocks; i++) {
        uint16_t *to = &dc[layout->mcu_components[(i + phase_shift) % layout->mcu_blocks]];
        *to = (uint16_t)(*to + sums[i]);
    }
}

/* Join the chunks. One that was not guessed right is walked again, from where the chunk before it ends. Returns false
 * if the data are damaged. */
static bool join_chunk_states(struct index_builder *builder)
{
    struct jpeg_index *index = builder->index;
    const int blocks = index->layout.mcu_blocks;
    struct jpeg_cursor at = {.bit = 0};
    uint16_t dc[JPEG_COMPONENTS_MAX] = {0};
    for (size_t i = 0; i < builder->chunk_count; i++) {
        struct chunk *chunk = &builder->chunks[i];
        if (!chunk->is_walked || chunk->first.bit != at.bit || (chunk->first.phase - at.phase) % index->period != 0) {
            index->wrong_guesses += chunk->is_walked;
            chunk->first = (struct jpeg_cursor){.bit = at.bit, .phase = at.phase};
            walk_chunk(builder, chunk, i);
        }
        chunk->phase_shift = (at.phase - chunk->first.phase + blocks) % blocks;
        chunk->blocks = at.blocks;
        memcpy(chunk->dc, dc, sizeof dc);
        add_sums(&index->layout, chunk->last.sums, chunk->phase_shift, dc);
        at.bit = chunk->last.bit;
        at.blocks += chunk->last.blocks;
        at.phase = (int)(at.blocks % (uint64_t)blocks);
        if (at.blocks >= builder->blocks) {
            builder->chunk_count = i + 1;
            return true;
        }
        if (chunk->is_broken)
            return false;
    }
    return false;
}

/* Find where block number BLOCK begins. The search starts at the last mark before it. */
static bool find_block(const struct index_builder *builder, uint64_t block, struct jpeg_entry *entry)
{
    const struct jpeg_layout *layout = &builder->index->layout;
    size_t low = 0, high = builder->chunk_count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(builder->chunks[middle].blocks <= block ? &low : &high) = middle;
    }
    const struct chunk *chunk = &builder->chunks[low];
    low = 0;
    high = chunk->mark_count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(chunk->blocks + chunk->marks[middle].blocks <= block ? &low : &high) = middle;
    }
    const struct mark *mark = &chunk->marks[low];
    const uint64_t before = chunk->blocks + mark->blocks;
    struct jpeg_cursor cursor = {.bit = chunk->first.bit + mark->bit,
                                 .phase = (int)(before % (uint64_t)layout->mcu_blocks)};
    uint64_t failed;
    memcpy(entry->dc, chunk->dc, sizeof entry->dc);
    add_sums(layout, mark->sums, chunk->phase_shift, entry->dc);
    if (!builder->index->loops->walk(builder->index, &cursor, block - before, UINT64_MAX, builder->bits, &failed))
        return false;
    add_sums(layout, cursor.sums, 0, entry->dc);
    entry->bit = cursor.bit;
    return true;
}

static uint64_t row_blocks(const struct jpeg_layout *layout)
{
    return (uint64_t)layout->mcus_across * (uint64_t)layout->mcu_blocks;
}

static void find_row_start(void *context, int64_t row, int thread)
{
    struct index_builder *builder = context;
    (void)thread;
    if (!find_block(builder, (uint64_t)row * row_blocks(&builder->index->layout), &builder->index->rows[row]))
        builder->is_damaged = true;
}

/* Without restart markers. */
static bool index_rows(struct index_builder *builder, struct thread_pool *pool)
{
    const int threads = thread_pool_threads(pool);
    struct jpeg_entry end;
    builder->chunk_count = (size_t)((builder->bits + builder->chunking.chunk - 1) / builder->chunking.chunk);
    builder->marks_each = builder->chunking.chunk / MARK_BITS + 2;
    builder->chunks = calloc(builder->chunk_count, sizeof *builder->chunks);
    builder->marks = calloc(builder->chunk_count * builder->marks_each, sizeof *builder->marks);
    if (builder->chunks == NULL || builder->marks == NULL)
        return false;
    for (size_t i = 0; i < builder->chunk_count; i++)
        builder->chunks[i].marks = builder->marks + i * builder->marks_each;
    if (threads > 1)
        parallel_for(pool, threads, (int64_t)builder->chunk_count, guess_chunk, builder);
    if (!join_chunk_states(builder) || !find_block(builder, builder->blocks, &end) || builder->bits - end.bit >= 8)
        return false;
    parallel_for(pool, threads, builder->index->layout.mcus_down, find_row_start, builder);
    return !builder->is_damaged;
}

/* ---- Restart segments ---- */

/* Walk over segment number NUMBER, and note the rows that begin in it. */
static bool walk_restart_segment(struct jpeg_index *index, size_t number)
{
    const struct jpeg_layout *layout = &index->layout;
    const uint64_t across = (uint64_t)layout->mcus_across, all = across * (uint64_t)layout->mcus_down;
    const uint64_t interval = (uint64_t)layout->restart_interval, first = number * interval;
    const uint64_t last = first + interval < all ? first + interval : all;
    const uint64_t end = (uint64_t)index->segments[number + 1] * 8;
    struct jpeg_cursor cursor = {.bit = (uint64_t)index->segments[number] * 8};
    for (uint64_t mcu = first; mcu < last;) {
        const uint64_t row = mcu / across, next = (row + 1) * across < last ? (row + 1) * across : last;
        uint64_t failed;
        if (mcu % across == 0) {
            struct jpeg_entry *entry = &index->rows[row];
            *entry = (struct jpeg_entry){.bit = cursor.bit};
            add_sums(layout, cursor.sums, 0, entry->dc);
        }
        if (!index->loops->walk(index, &cursor, (next - mcu) * (uint64_t)layout->mcu_blocks, UINT64_MAX, end, &failed))
            return false;
        mcu = next;
    }
    return end - cursor.bit < 8;
}

/* The segments are dealt out in runs of about a chunk. */
static size_t run_length(const struct index_builder *builder)
{
    const size_t length = (size_t)(builder->index->segment_count * (uint64_t)builder->chunking.chunk / builder->bits);
    return length > 0 ? length : 1;
}

static void walk_run(void *context, int64_t number, int thread)
{
    struct index_builder *builder = context;
    const size_t length = run_length(builder), first = (size_t)number * length;
    (void)thread;
    for (size_t i = first; i < first + length && i < builder->index->segment_count && !builder->is_damaged; i++)
        if (!walk_restart_segment(builder->index, i))
            builder->is_damaged = true;
}

static bool make_restart_rows(struct index_builder *builder, struct thread_pool *pool)
{
    const size_t length = run_length(builder), runs = (builder->index->segment_count + length - 1) / length;
    parallel_for(pool, thread_pool_threads(pool), (int64_t)runs, walk_run, builder);
    return !builder->is_damaged;
}

/* ---- The index ---- */

/* Make the lookups, one for each different pair of tables. */
static bool make_lookups(struct jpeg_index *index)
{
    const struct jpeg_layout *layout = &index->layout;
    int of_component[JPEG_COMPONENTS_MAX];
    index->lookups = malloc((size_t)layout->component_count * sizeof *index->lookups);
    if (index->lookups == NULL)
        return false;
    for (int i = 0; i < layout->component_count; i++) {
        const struct jpeg_component *component = &layout->components[i];
        of_component[i] = 0;
        while (!jpeg_shares_codes(layout, i, of_component[i]))
            of_component[i]++;
        if (of_component[i] == i)
            jpeg_lookup_make(&index->lookups[i], &layout->tables.dc[component->dc], &layout->tables.ac[component->ac]);
    }
    for (int i = 0; i < layout->mcu_blocks; i++)
        index->blocks[i] = &index->lookups[of_component[layout->mcu_components[i]]];
    index->period = jpeg_period(layout);
    return true;
}

static bool copy_data(struct jpeg_index *index, const struct jpeg_scan *scan)
{
    const size_t count = index->segment_count = jpeg_count_segments(&index->layout, scan);
    if (count == 0)
        return false;
    index->data = malloc(scan->size + JPEG_DATA_PADDING);
    index->segments = malloc((count + 1) * sizeof *index->segments);
    index->rows = malloc((size_t)index->layout.mcus_down * sizeof *index->rows);
    if (index->data == NULL || index->segments == NULL || index->rows == NULL ||
        !jpeg_copy_scan(scan, count, index->data, &index->size, index->segments))
        return false;
    index->segments[count] = (uint32_t)index->size;
    memset(index->data + index->size, 0, JPEG_DATA_PADDING);
    return true;
}

struct jpeg_index *jpeg_index_build(const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                                    const struct jpeg_decode_loops *loops, const struct jpeg_chunking *chunking,
                                    struct thread_pool *pool)
{
    struct jpeg_index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return NULL;
    index->layout = *layout;
    index->loops = loops;
    bool done = copy_data(index, scan) && make_lookups(index) && index->size > 0;
    if (done) {
        struct index_builder builder = {.index = index,
                                        .chunking = *chunking,
                                        .bits = (uint64_t)index->size * 8,
                                        .blocks = row_blocks(layout) * (uint64_t)layout->mcus_down};
        done = index->segment_count > 1 ? make_restart_rows(&builder, pool) : index_rows(&builder, pool);
        free(builder.chunks);
        free(builder.marks);
    }
    if (done)
        return index;
    jpeg_index_free(index);
    return NULL;
}

void jpeg_index_free(struct jpeg_index *index)
{
    if (index == NULL)
        return;
    free(index->data);
    free(index->segments);
    free(index->lookups);
    free(index->rows);
    free(index);
}

/* A mark for each MARK_BITS takes less than 1/16 of the data, or there are restart segments, at least 3 bytes each. */
size_t jpeg_index_need(int height, size_t size)
{
    enum { OTHER = 1 << 16 };
    return 7 * size / 3 + (size_t)height * sizeof(struct jpeg_entry) / JPEG_SIDE +
           JPEG_COMPONENTS_MAX * sizeof(struct jpeg_lookup) + OTHER;
}
