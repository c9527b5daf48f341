/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the deflate, compiled once for each instruction set. rules.h defines what they do. */
#include "png/loops.h"

#include "base/bytes.h"
#include "base/vector/vector.h"
#include "png/png.h"

#include <assert.h>

/* ---- Bit sets ---- */

static bool has(const uint64_t *bits, size_t at)
{
    return bits[at / DEFLATE_WORD] >> at % DEFLATE_WORD & 1;
}

/* The 64 bits from AT on. */
static uint64_t bits_from(const uint64_t *bits, size_t at)
{
    const size_t word = at / DEFLATE_WORD, shift = at % DEFLATE_WORD;
    return bits[word] >> shift | bits[word + 1] << 1 << (DEFLATE_WORD - 1 - shift);
}

/* The first bit from AT on that is set, or SIZE. */
static size_t find_next(const uint64_t *bits, size_t at, size_t size)
{
    if (at >= size)
        return size;
    const uint64_t here = bits_from(bits, at);
    if (here != 0)
        return at + (size_t)__builtin_ctzll(here);
    for (size_t word = at / DEFLATE_WORD + 1; word * DEFLATE_WORD < size; word++)
        if (bits[word] != 0)
            return word * DEFLATE_WORD + (size_t)__builtin_ctzll(bits[word]);
    return size;
}

/* The number of bits from AT on that are set. */
static size_t count_ones(const uint64_t *bits, size_t at)
{
    size_t count = 0;
    uint64_t zeros;
    while ((zeros = ~bits_from(bits, at + count)) == 0)
        count += DEFLATE_WORD;
    return count + (size_t)__builtin_ctzll(zeros);
}

static void set_bits(uint64_t *bits, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += DEFLATE_WORD) {
        const size_t word = at / DEFLATE_WORD, shift = at % DEFLATE_WORD, left = to - at;
        const uint64_t ones = left < DEFLATE_WORD ? ~(~0ull << left) : ~0ull;
        bits[word] |= ones << shift;
        bits[word + 1] |= ones >> 1 >> (DEFLATE_WORD - 1 - shift);
    }
}

/* Keep each bit if the bit STEP positions later is set, too. HIGH has the bits after LOW. */
INLINE void keep_before(uint64_t *low, uint64_t *high, unsigned step)
{
    *low &= *low >> step | *high << (DEFLATE_WORD - step);
    *high &= *high >> step;
}

/* For each set bit, set the bit STEP positions later. HIGH has the bits after LOW. */
INLINE void set_after(uint64_t *low, uint64_t *high, unsigned step)
{
    *high |= *high << step | *low >> (DEFLATE_WORD - step);
    *low |= *low << step;
}

/* Set `starts`, the positions from which on LENGTH bytes are the same, at either distance, and RUNS, these bytes.
 * LENGTH is WHOLE, a constant power of two, or up to twice that. */
INLINE void find_runs(struct deflate_workspace *workspace, size_t words, unsigned whole, unsigned length,
                      uint64_t *runs)
{
    const unsigned rest = length - whole;
    const int steps = __builtin_ctz(whole);
    uint64_t *starts = workspace->starts;
    for (size_t word = 0; word < words; word++) {
        starts[word] = 0;
        for (int i = 0; i < 2; i++) {
            uint64_t low = workspace->same[i][word], high = workspace->same[i][word + 1];
            for (int step = 0; step < steps; step++)
                keep_before(&low, &high, 1u << step);
            starts[word] |= low & (low >> rest | high << 1 << (63 - rest));
        }
    }
    starts[words] = 0;
    for (size_t word = 0; word < words; word++) {
        uint64_t high = starts[word], low = word > 0 ? starts[word - 1] : 0;
        for (int step = 0; step < steps; step++)
            set_after(&low, &high, 1u << step);
        runs[word] = high | high << rest | low >> 1 >> (63 - rest);
    }
}

/* ---- Marks ---- */

INLINE uchars mix_uchars(const uint8_t *bytes)
{
    uchars sum = load_uchars(bytes + DEFLATE_HASHED - 1);
    for (int i = DEFLATE_HASHED - 2; i >= 0; i--)
        sum = sum + sum + sum + load_uchars(bytes + i);
    return sum;
}

/* The marks of COUNT positions from AT on, one by one. */
static void mark_positions(struct deflate_workspace *workspace, const uint8_t *block, size_t at, size_t count,
                           size_t size, size_t before, size_t pixel)
{
    uint64_t same[2] = {0}, sampled = 0;
    for (size_t i = count; i-- > 0;) { /* gcc 14 makes wrong vectors of the other direction, with AVX-512 */
        const uint8_t *byte = block + at + i;
        const size_t position = before + at + i;
        same[0] = same[0] << 1 | (position > 0 && byte[0] == byte[-1]);
        same[1] = same[1] << 1 | (pixel > 1 && position >= pixel && byte[0] == *(byte - pixel));
        sampled = sampled << 1 | (workspace->is_fast ? deflate_is_rare(*byte)
                                                     : at + i + DEFLATE_HASHED <= size && deflate_is_sampled(byte));
    }
    workspace->same[0][at / DEFLATE_WORD] = same[0];
    workspace->same[1][at / DEFLATE_WORD] = same[1];
    workspace->sampled[at / DEFLATE_WORD] = sampled;
}

/* Set the bit sets `same` and `sampled`. On the fast level, `sampled` has the bytes with rare values. */
INLINE void mark(struct deflate_workspace *workspace, const uint8_t *block, size_t size, size_t before, size_t pixel,
                 bool is_fast)
{
    size_t at = 0;
    for (; at < size; at += DEFLATE_WORD) {
        if (before + at < PNG_PIXEL_MAX || at + DEFLATE_WORD + DEFLATE_HASHED > size) {
            const size_t left = size - at;
            mark_positions(workspace, block, at, left < DEFLATE_WORD ? left : DEFLATE_WORD, size, before, pixel);
            continue;
        }
        uint64_t same[2] = {0}, sampled = 0;
        for (size_t i = 0; i < DEFLATE_WORD; i += VECTOR) {
            const uint8_t *bytes = block + at + i;
            const uchars here = load_uchars(bytes);
            same[0] |= equal_uchars(here, load_uchars(bytes - 1)) << i;
            same[1] |= equal_uchars(here, load_uchars(bytes - pixel)) << i;
        }
        const bool is_run = !is_fast && same[0] == ~0ull; /* samples in runs do not count */
        for (size_t i = 0; i < DEFLATE_WORD && !is_run; i += VECTOR) {
            const uint8_t *bytes = block + at + i;
            const uchars here = load_uchars(bytes);
            if (is_fast)
                sampled |=
                    equal_uchars(larger_uchars(here + FAST_NEAR / 2, FAST_NEAR - (uchars){0}), here + FAST_NEAR / 2)
                    << i;
            else
                sampled |= equal_uchars(mix_uchars(bytes) & SAMPLE_BITS, SAMPLE_VALUE - (uchars){0}) << i;
        }
        workspace->same[0][at / DEFLATE_WORD] = same[0];
        workspace->same[1][at / DEFLATE_WORD] = pixel > 1 ? same[1] : 0;
        workspace->sampled[at / DEFLATE_WORD] = sampled;
    }
    workspace->same[0][at / DEFLATE_WORD] = workspace->same[1][at / DEFLATE_WORD] =
        workspace->sampled[at / DEFLATE_WORD] = 0;
}

/* Set `hashed`: a quarter of all positions, and all with large differences. */
static void choose_hashed(struct deflate_workspace *workspace, const uint8_t *block, size_t size)
{
    for (size_t at = 0; at < size; at += DEFLATE_WORD) {
        uint64_t hashed = 0;
        const bool begins_zero = workspace->same[0][at / DEFLATE_WORD] == ~0ull && block[at] == 0;
        if (at + DEFLATE_WORD + DEFLATE_HASHED > size) {
            for (size_t i = 0; i < DEFLATE_WORD && at + i + DEFLATE_HASHED <= size; i++)
                hashed |= (uint64_t)deflate_is_hashed(block + at + i) << i;
        } else if (!begins_zero || little64(block + at + DEFLATE_WORD) != 0) { /* only zeros have none */
            for (size_t i = 0; i < DEFLATE_WORD; i += VECTOR) {
                const uint8_t *bytes = block + at + i;
                uchars sum = {0}, mix = {0};
                for (int k = 0; k < DEFLATE_HASHED; k++) {
                    const uchars value = load_uchars(bytes + k);
                    mix += k % 2 == 0 ? value : -value; /* modulo 4, 3 is -1 */
                    sum += smaller_uchars(smaller_uchars(value, -value), DEFLATE_DIFFERENCE_MAX - (uchars){0});
                }
                const uchars lowest = DEFLATE_DIFFERENCE_MIN - (uchars){0};
                hashed |= (equal_uchars(smaller_uchars(sum, lowest), lowest) |
                           equal_uchars(mix & QUARTER_BITS, QUARTER_VALUE - (uchars){0}))
                          << i;
            }
        }
        workspace->hashed[at / DEFLATE_WORD] = hashed;
    }
}

/* ---- Prices ---- */

/* Copy those of DEFLATE_WORD bytes whose bits are set, to OUT, which can hold all. Returns their number. If
 * IS_WHOLE, all bytes can be read. */
INLINE size_t gather_set(const struct deflate_workspace *workspace, const uint8_t *bytes, uint64_t bits, bool is_whole,
                         uint8_t *out)
{
    (void)workspace, (void)is_whole; /* few sets need them */
#ifdef __AVX512VBMI2__
    store(out, (ints)_mm512_maskz_compress_epi8(bits, _mm512_maskz_loadu_epi8(bits, bytes)));
#else
    if (~bits == 0)
        memcpy(out, bytes, DEFLATE_WORD);
#ifdef __AVX2__
    else if (is_whole && __builtin_popcountll(bits) > 12)
        for (unsigned i = 0; i < DEFLATE_WORD; i += 8) {
            const uint64_t eight = bits >> i & 255;
            const __m128i order = _mm_loadl_epi64((const void *)&workspace->orders[eight]);
            _mm_storel_epi64((void *)out, _mm_shuffle_epi8(_mm_loadl_epi64((const void *)(bytes + i)), order));
            out += __builtin_popcountll(eight);
        }
#endif
    else
        for (uint64_t left = bits; left != 0; left &= left - 1)
            *out++ = bytes[__builtin_ctzll(left)];
#endif
    return (size_t)__builtin_popcountll(bits);
}

/* Add BY to the uses of the bytes that are `counted`, in one word in EVERY. Eight tables are used cyclically, so that
 * equal neighbours need not wait for each other. */
static void count_bytes(struct deflate_workspace *workspace, const uint8_t *block, size_t words, size_t every,
                        uint32_t by)
{
    enum { GATHERED = 2048, TOGETHER = 8 };
    uint16_t counts[TOGETHER][DEFLATE_LITERALS] = {{0}};
    static_assert(DEFLATE_BLOCK <= UINT16_MAX, "a count fits");
    uint8_t gathered[GATHERED + DEFLATE_WORD];
    for (size_t word = 0; word < words;) {
        size_t size = 0, at = 0;
        for (; word < words && size <= GATHERED; word += every)
            size += gather_set(workspace, block + word * DEFLATE_WORD, workspace->counted[word], word + 1 < words,
                               gathered + size);
        for (; at + TOGETHER <= size; at += TOGETHER) {
            const uint64_t bytes = little64(gathered + at);
            for (unsigned k = 0; k < TOGETHER; k++)
                counts[k][bytes >> 8 * k & 255]++;
        }
        for (; at < size; at++)
            counts[0][gathered[at]]++;
    }
    for (int k = 1; k < TOGETHER; k++)
        for (int i = 0; i < DEFLATE_LITERALS; i++)
            counts[0][i] += counts[k][i];
    for (int i = 0; i < DEFLATE_LITERALS; i++)
        workspace->uses.litlens[i] += by * counts[0][i];
}

/* What the literals of a block cost, those of long runs left out. */
struct literals {
    uint64_t count, price;
    unsigned lowest; /* the price of the cheapest */
};

/* Estimate the bits of each literal, in 1/16 bit. */
static struct literals price_literals(struct deflate_workspace *workspace)
{
    unsigned total = 0, lowest = PRICE_MAX;
    uint64_t sum = 0;
    for (int i = 0; i < DEFLATE_LITERALS; i++)
        total += workspace->uses.litlens[i];
    for (int i = 0; i < DEFLATE_LITERALS; i++) {
        const unsigned uses = workspace->uses.litlens[i], price = deflate_price(total, uses);
        workspace->prices[i] = (uint8_t)price;
        sum += (uint64_t)price * uses;
        lowest = price < lowest ? price : lowest;
    }
    return (struct literals){total, sum, lowest};
}

/* The prices of those of DEFLATE_WORD bytes whose bits are set. */
static unsigned sum_prices(const uint8_t *prices, const uint8_t *bytes, uint64_t bits)
{
    unsigned sum = 0;
    for (; bits != 0; bits >>= 1, bytes++)
        sum += prices[*bytes] & -(unsigned)(bits & 1);
    return sum;
}

/* The price of the bytes from FROM to TO without other repetitions than runs. It stops where it exceeds ENOUGH. */
static unsigned price_bytes(const struct deflate_workspace *workspace, const uint8_t *block, size_t from, size_t to,
                            unsigned enough)
{
    unsigned price = 0;
    for (size_t at = from; at < to && price <= enough; at += DEFLATE_WORD) {
        const uint64_t here = to - at < DEFLATE_WORD ? ~(~0ull << (to - at)) : ~0ull;
        const uint64_t runs = bits_from(workspace->runs, at);
        const uint64_t begun = runs << 1 | (at > 0 && has(workspace->runs, at - 1));
        price += RUN_PRICE * (unsigned)__builtin_popcountll(runs & ~begun & here);
        price += sum_prices(workspace->prices, block + at, here & ~runs);
    }
    return price;
}

/* ---- Sequences ---- */

/* The number of equal bytes at the beginning of A and B, at most LIMIT. */
static size_t equal_length(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t length = 0;
    for (; length + VECTOR <= limit; length += VECTOR) {
        const uint64_t same = equal_uchars(load_uchars(a + length), load_uchars(b + length));
        if (same != ~0ull >> (64 - VECTOR))
            return length + (size_t)__builtin_ctzll(~same);
    }
    while (length < limit && a[length] == b[length])
        length++;
    return length;
}

/* Set the candidates of some chosen positions: for each, the latest of them with the same hash, or a position after the
 * block. No branch depends on the bytes. */
static void find_candidates(struct deflate_workspace *workspace, const uint8_t *block, size_t size,
                            const uint64_t *chosen)
{
    size_t positions = 0;
    for (size_t word = 0; word * DEFLATE_WORD < size; word++) {
        uint64_t left = chosen[word];
        workspace->first_candidates[word] = (uint16_t)positions;
        const size_t end = positions + (size_t)__builtin_popcountll(left);
        for (; positions < end; positions += DEFLATE_POSITIONS_TOGETHER)
            for (size_t i = 0; i < DEFLATE_POSITIONS_TOGETHER; i++, left &= left - 1)
                workspace->candidates[positions + i].position =
                    (uint16_t)(word * DEFLATE_WORD + (size_t)__builtin_ctzll(left | 1ull << 63));
        positions = end;
    }
    memset(workspace->latest, 255, sizeof workspace->latest);
    for (size_t i = 0; i < positions; i++) {
        const uint16_t position = workspace->candidates[i].position;
        uint16_t *latest = &workspace->latest[deflate_hash(little64(block + position))];
        workspace->candidates[i].from = *latest;
        *latest = position;
    }
    workspace->first_candidates[(size - 1) / DEFLATE_WORD + 1] = (uint16_t)positions;
    workspace->candidate_count = positions;
}

/* Is a candidate before its position, but not too far, and has it the same bytes? */
INLINE bool is_same(const uint8_t *block, struct deflate_candidate candidate)
{
    return candidate.position - candidate.from - 1u < DEFLATE_WINDOW &&
           little64(block + candidate.position) == little64(block + candidate.from);
}

/* Estimate from the samples whether repetitions save enough. */
static bool has_repetitions(struct deflate_workspace *workspace, const uint8_t *block, size_t size,
                            const struct literals *literals)
{
    uint64_t saved = 0;
    find_candidates(workspace, block, size, workspace->sampled);
    for (size_t i = 0; i < workspace->candidate_count; i++) {
        if (!is_same(block, workspace->candidates[i]))
            continue;
        const size_t at = workspace->candidates[i].position, from = workspace->candidates[i].from;
        const size_t limit = size - at < SAMPLE_LENGTH ? size - at : SAMPLE_LENGTH;
        const size_t length = equal_length(block + at, block + from, limit);
        const unsigned old = price_bytes(workspace, block, at, at + length, UINT32_MAX);
        const unsigned new = deflate_repetition_price((unsigned)(at - from));
        saved += old > new ? (old - new) / length : 0;
    }
    return deflate_saves_enough(saved, literals->price, literals->count, size);
}

/* Add a repetition, in parts of at most DEFLATE_LENGTH_MAX. Returns its end: a rest that is too short is left. */
static size_t add_repetition(struct deflate_workspace *workspace, size_t at, size_t length, size_t distance)
{
    const unsigned symbol = deflate_symbol((unsigned)distance - 1, DISTANCE_STEPS);
    const size_t start = at;
    while (length >= DEFLATE_LENGTH_MIN) {
        const size_t part = length < DEFLATE_LENGTH_MAX ? length : DEFLATE_LENGTH_MAX;
        workspace->sequences[workspace->count++] =
            (struct deflate_sequence){(uint16_t)(at - workspace->literal), (uint16_t)part, (uint16_t)distance};
        workspace->uses.litlens[DEFLATE_LENGTH_FIRST + deflate_length_symbol((unsigned)part)]++;
        workspace->uses.distances[symbol]++;
        workspace->literal = at += part;
        length -= part;
    }
    set_bits(workspace->sequenced, start, at);
    return at;
}

/* Add the run that starts at AT: the longer one, or the one of a byte. Returns its end. */
static size_t add_run(struct deflate_workspace *workspace, size_t at, size_t pixel)
{
    const size_t bytes = count_ones(workspace->same[0], at), pixels = count_ones(workspace->same[1], at);
    return bytes >= pixels ? add_repetition(workspace, at, bytes, 1) : add_repetition(workspace, at, pixels, pixel);
}

/* Add a repetition at AT, of FROM, if it saves bits. Returns its end, or 0. */
static size_t try_other(struct deflate_workspace *workspace, const uint8_t *block, size_t at, size_t from, size_t size)
{
    const unsigned price = deflate_repetition_price((unsigned)(at - from));
    const size_t length = equal_length(block + at, block + from, size - at);
    size_t back = 0;
    while (at - back > workspace->literal && from - back > 0 && block[at - back - 1] == block[from - back - 1])
        back++;
    if (price_bytes(workspace, block, at - back, at + length, price) <= price)
        return 0;
    return add_repetition(workspace, at - back, back + length, at - from);
}

static void find_sequences(struct deflate_workspace *workspace, const uint8_t *block, size_t size, size_t pixel)
{
    size_t at = 0, i = 0;
    workspace->literal = 0;
    for (size_t run; (run = find_next(workspace->starts, at, size)) < size || i < workspace->candidate_count;) {
        size_t next = 0;
        for (; next == 0 && i < workspace->candidate_count && workspace->candidates[i].position < run; i++)
            if (is_same(block, workspace->candidates[i]))
                next =
                    try_other(workspace, block, workspace->candidates[i].position, workspace->candidates[i].from, size);
        if (next > 0)
            at = next;
        else if (run < size)
            at = add_run(workspace, run, pixel);
        if (i < workspace->candidate_count) /* go on with the first candidate from AT on */
            i = workspace->first_candidates[at / DEFLATE_WORD] +
                (size_t)__builtin_popcountll(workspace->hashed[at / DEFLATE_WORD] & ~(~0ull << at % DEFLATE_WORD));
    }
    workspace->sequences[workspace->count++] = (struct deflate_sequence){(uint16_t)(size - workspace->literal), 0, 0};
}

/* Split a block by the rules of the fast level. */
static void split_fast(struct deflate_workspace *workspace, const uint8_t *block, size_t size, size_t before,
                       size_t pixel)
{
    const unsigned every = (unsigned)(size / FAST_SAMPLE) + 1;
    struct deflate_uses *uses = &workspace->uses;
    uint8_t has_rare[DEFLATE_LITERALS] = {0};
    size_t rare = 0;
    for (size_t at = 0, part; at < size; at += part) {
        part = size - at < DEFLATE_BLOCK ? size - at : DEFLATE_BLOCK;
        const size_t words = (part - 1) / DEFLATE_WORD + 1;
        mark(workspace, block + at, part, before + at, pixel, true);
        find_runs(workspace, words, FAST_RUN, FAST_RUN, workspace->runs);
        for (size_t word = 0; word < words; word++) {
            workspace->counted[word] = ~workspace->runs[word];
            rare += (size_t)__builtin_popcountll(workspace->sampled[word]);
            for (uint64_t left = rare <= FAST_RARE ? workspace->sampled[word] : 0; left != 0; left &= left - 1)
                has_rare[block[at + word * DEFLATE_WORD + (size_t)__builtin_ctzll(left)]] = 1;
        }
        workspace->counted[words - 1] &= ~0ull >> (DEFLATE_WORD - 1 - (part - 1) % DEFLATE_WORD);
        count_bytes(workspace, block + at, words, every, 1);
        find_sequences(workspace, block + at, part, pixel);
    }
    for (unsigned i = 0; i < DEFLATE_LITERALS; i++)
        uses->litlens[i] += rare > FAST_RARE || !deflate_is_rare((uint8_t)i) || has_rare[i];
    for (unsigned i = DEFLATE_LENGTH_FIRST; i < DEFLATE_LITLENS; i++)
        uses->litlens[i] = (uses->litlens[i] + every - 1) / every;
    for (unsigned i = 0; i < DEFLATE_DISTANCES; i++)
        uses->distances[i] = (uses->distances[i] + every - 1) / every;
}

static void split(struct deflate_workspace *workspace, const uint8_t *block, size_t size, size_t before, size_t pixel)
{
    const size_t words = (size - 1) / DEFLATE_WORD + 1;
    memset(&workspace->uses, 0, sizeof workspace->uses);
    workspace->uses.litlens[DEFLATE_END] = 1;
    workspace->count = workspace->candidate_count = 0;
    if (workspace->is_fast) {
        split_fast(workspace, block, size, before, pixel);
        return;
    }
    mark(workspace, block, size, before, pixel, false);
    find_runs(workspace, words, DEFLATE_LONG_RUN, DEFLATE_LONG_RUN, workspace->uncounted);
    for (size_t word = 0; word < words; word++)
        workspace->counted[word] = ~workspace->uncounted[word];
    workspace->counted[words - 1] &= ~0ull >> (DEFLATE_WORD - 1 - (size - 1) % DEFLATE_WORD);
    count_bytes(workspace, block, words, 1, 1);
    const struct literals literals = price_literals(workspace);
    find_runs(workspace, words, DEFLATE_LEAST, deflate_least_run(literals.lowest), workspace->runs);
    for (size_t word = 0; word < words; word++)
        workspace->sampled[word] &= ~workspace->runs[word];
    if (has_repetitions(workspace, block, size, &literals)) {
        choose_hashed(workspace, block, size);
        find_candidates(workspace, block, size, workspace->hashed);
    } else {
        workspace->candidate_count = 0;
    }
    memset(workspace->sequenced, 0, words * sizeof *workspace->sequenced);
    find_sequences(workspace, block, size, pixel);

    /* The literals in long runs were not counted, and the bytes of repetitions were. */
    for (size_t word = 0; word < words; word++)
        workspace->counted[word] = workspace->uncounted[word] & ~workspace->sequenced[word];
    count_bytes(workspace, block, words, 1, 1);
    for (size_t word = 0; word < words; word++)
        workspace->counted[word] = workspace->sequenced[word] & ~workspace->uncounted[word];
    count_bytes(workspace, block, words, 1, UINT32_MAX);
}

/* ---- Bits ---- */

enum { TOGETHER = VECTOR > 16 ? VECTOR : DEFLATE_WORD }; /* literals */

#if VECTOR > 16 /* where each lane can be shifted by its own number of bits */

typedef uint64_t ulongs __attribute__((vector_size(VECTOR)));

INLINE bool are_below(uchars values, int limit)
{
    return equal_uchars(smaller_uchars(values, (uint8_t)(limit - 1) - (uchars){0}), values) == ~0ull >> (64 - VECTOR);
}

/* Bytes of the codes of all literals, from CODES_FIRST on: bits 0 to 7, and bits 8 to 11 with the length above them. */
struct byte_codes {
    raw low[DEFLATE_LITERALS / VECTOR], high[DEFLATE_LITERALS / VECTOR];
};

/* Look up the bytes of the codes of LITERALS. Returns false if they must be written one by one. */
#ifdef __AVX512VBMI2__

enum { CODES_FIRST = 0 };

INLINE raw look_up_bytes(const raw table[4], raw bytes)
{
    const raw first = _mm512_permutex2var_epi8(table[0], bytes, table[1]);
    const raw last = _mm512_permutex2var_epi8(table[2], bytes, table[3]);
    return _mm512_mask_mov_epi8(first, _mm512_movepi8_mask(bytes), last);
}

INLINE bool look_up_codes(const struct byte_codes *codes, uchars literals, uchars *low, uchars *high)
{
    *low = (uchars)look_up_bytes(codes->low, (raw)literals);
    *high = (uchars)look_up_bytes(codes->high, (raw)literals);
    return true;
}

#else

enum { CODES_FIRST = -32, CODES_NEAR = 64 }; /* nearly all literals are small differences */

INLINE bool look_up_codes(const struct byte_codes *codes, uchars literals, uchars *low, uchars *high)
{
    const uchars positions = literals - (uint8_t)CODES_FIRST;
    if (!are_below(positions, CODES_NEAR))
        return false;
    *low = *high = (uchars){0};
    for (int i = 0; i < CODES_NEAR; i += QUAD) {
        const shorts index = (shorts)add_uchars(positions - (uint8_t)i, 0x70 - (uchars){0}); /* others exceed 127 */
        *low |= (uchars)shuffle(load_quad((const uint8_t *)codes->low + i), index);
        *high |= (uchars)shuffle(load_quad((const uint8_t *)codes->high + i), index);
    }
    return true;
}

#endif

static struct byte_codes split_codes(const uint32_t *literals)
{
    uint8_t bytes[2][DEFLATE_LITERALS];
    struct byte_codes codes;
    for (int i = 0; i < DEFLATE_LITERALS; i++) {
        const uint32_t code = literals[(CODES_FIRST + i) & 255];
        bytes[0][i] = (uint8_t)(code >> 8);
        bytes[1][i] = (uint8_t)(code >> 16 | code << 4);
    }
    memcpy(codes.low, bytes[0], sizeof codes.low);
    memcpy(codes.high, bytes[1], sizeof codes.high);
    return codes;
}

INLINE ulongs even_lanes(uints value)
{
    return (ulongs)odd_lanes((ints)value, (ints){0});
}

/* Write VECTOR literals. The codes of two are joined, then those of four: at most 48 bits. Returns false if
 * they must be written one by one. */
INLINE bool write_together(const struct byte_codes *codes, const uint8_t *literals, struct deflate_writer *out)
{
    ushorts low, high;
    if (!look_up_codes(codes, load_uchars(literals), (uchars *)&low, (uchars *)&high))
        return false;
    /* Two literals in 16 bits each, with their lengths. */
    const ushorts first_high = high << 8;
    const uints first = (uints)(low << 8 >> 8) | (uints)(first_high & 0x0f00);
    const uints last = (uints)(low >> 8) | (uints)(high & 0x0f00);
    const uints first_length = (uints)(first_high >> 12), last_length = (uints)(high >> 12);
    const uints lengths = first_length + last_length;
    /* Two literals in 32 bits: those of the lower 16 bits, and of the upper ones. */
    const uints lower = (first & 0xffff) | (last & 0xffff) << (first_length & 0xffff);
    const uints upper = first >> 16 | last >> 16 << (first_length >> 16);
    const uints shift = lengths & 0xffff, counts = shift + (lengths >> 16);
    /* Four literals in 64 bits: those of the lower 32 bits, and of the upper ones. */
    const ulongs first_four = even_lanes(lower) | even_lanes(upper) << even_lanes(shift);
    const ulongs last_four = (ulongs)lower >> 32 | (ulongs)upper >> 32 << ((ulongs)shift >> 32);
    const ulongs first_count = even_lanes(counts), last_count = (ulongs)counts >> 32, both = first_count + last_count;
    uint64_t values[2][VECTOR / 8], bits[2][VECTOR / 8];
    if (are_below((uchars)both, 64 - 7)) { /* eight literals fit with those that wait */
        store(values[0], (ints)(first_four | last_four << first_count));
        store(bits[0], (ints)both);
        for (size_t i = 0; i < VECTOR / 8; i++) {
            deflate_put(out, values[0][i], (unsigned)bits[0][i]);
            deflate_flush(out);
        }
        return true;
    }
    store(values[0], (ints)first_four);
    store(values[1], (ints)last_four);
    store(bits[0], (ints)first_count);
    store(bits[1], (ints)last_count);
    for (size_t i = 0; i < VECTOR / 4; i++) {
        deflate_put(out, values[i % 2][i / 2], (unsigned)bits[i % 2][i / 2]);
        deflate_flush(out);
    }
    return true;
}

#endif

static void write(const struct deflate_workspace *workspace, const uint8_t *block, struct deflate_writer *to)
{
    const uint32_t *literals = workspace->tables.literals;
    struct deflate_writer out = *to;
#if VECTOR > 16
    const struct byte_codes codes = split_codes(literals);
#endif
    for (size_t i = 0; i < workspace->count; i++) {
        const struct deflate_sequence *s = &workspace->sequences[i];
        for (size_t at = 0, stop; at < s->literals; at = stop) {
            stop = s->literals - at < TOGETHER ? s->literals : at + TOGETHER;
#if VECTOR > 16
            if (stop - at == TOGETHER && write_together(&codes, block + at, &out))
                continue;
#endif
            for (; at + 4 <= stop; at += 4) {
                const uint32_t a = literals[block[at]], b = literals[block[at + 1]];
                const uint32_t c = literals[block[at + 2]], d = literals[block[at + 3]];
                const uint64_t first = a >> 8 | (uint64_t)(b >> 8) << (a & 255);
                const uint64_t last = c >> 8 | (uint64_t)(d >> 8) << (c & 255);
                deflate_put(&out, first | last << ((a + b) & 255), (a + b + c + d) & 255);
                deflate_flush(&out);
            }
            for (; at < stop; at++)
                deflate_put_code(&out, literals[block[at]]);
            deflate_flush(&out);
        }
        block += (size_t)s->literals + s->length;
        if (s->length == 0)
            continue;
        const unsigned symbol = deflate_symbol(s->distance - 1u, DISTANCE_STEPS);
        const unsigned extra = deflate_extra(symbol, DISTANCE_STEPS);
        deflate_put_code(&out, workspace->tables.lengths[s->length]);
        deflate_put_code(&out, workspace->tables.distances[symbol]);
        deflate_put(&out, (s->distance - 1u) & ((1u << extra) - 1), extra);
        deflate_flush(&out);
    }
    deflate_put_code(&out, workspace->tables.end);
    deflate_flush(&out);
    *to = out;
}

void IN_SET(png_filter)(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, bool is_fast,
                        uint8_t *out);

const struct png_loops IN_SET(png_loops) = {split, write, IN_SET(png_filter)};
