/* SPDX-License-Identifier: MIT
 *
 * Ranks of keys of one type. rank_loops.c includes this once for each type of samples: KEY is that of the keys, which
 * are samples or, for floats, what rank_key makes of them. NAME(x) is the name of a function for KEY. The compiler
 * vectorises these loops. */

/* ---- Rows ---- */

/* Copy keys of COUNT pixels from (Y, X) on to TO, with what stands outside the image. */
static void NAME(load)(const struct rank_tiling *tiling, int channel, int y, int x, int count, KEY *to)
{
    const struct plane *in = tiling->run->in;
    const enum border border = tiling->run->plan->border;
    const int step = plane_step(in), lanes = tiling->lanes, from_y = border_index(y, in->height, border);
    const KEY *row = plane_row(in, channel, from_y < 0 ? 0 : from_y), *from = row + (ptrdiff_t)x * step;
    const int left = x < 0 ? (-x < count ? -x : count) : 0;
    const int right = in->width - x < left ? left : in->width - x < count ? in->width - x : count;
    for (int k = 0; k < count; k++) {
        if (k == left && from_y >= 0) /* the pixels of the image */
            k = right;
        if (k == count)
            break;
        const int from_x = border_index(x + k, in->width, border);
        for (int lane = 0; lane < lanes; lane++)
            to[k * lanes + lane] = (KEY)(from_x < 0 || from_y < 0 ? TO_KEY(0) : TO_KEY(row[from_x * step + lane]));
    }
    if (from_y < 0)
        return;
    if (lanes == step)
        for (int k = left * step; k < right * step; k++)
            to[k] = (KEY)TO_KEY(from[k]);
    else
        for (int k = left; k < right; k++)
            to[k] = (KEY)TO_KEY(from[k * step]);
}

/* Row ROW of the tile's input, without the columns LEFT and RIGHT: of the image, or a copy in SLOT. */
static const KEY *NAME(input)(const struct rank_tiling *tiling, const struct rank_tile *tile, int row, KEY *slot)
{
    const struct plane *in = tiling->run->in;
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int x = tile->x0 - rank->anchor_x + tile->left;
    const int count = tile->x1 - tile->x0 + rank->width - 1 - tile->left - tile->right;
    const int y = tile->y0 + row - rank->anchor_y;
    const int from_y = border_index(y, in->height, tiling->run->plan->border);
    if (in->sample != SAMPLE_F32 && from_y >= 0 && x >= 0 && x + count <= in->width)
        return (const KEY *)plane_row(in, tile->channel, from_y) + (ptrdiff_t)x * plane_step(in);
    NAME(load)(tiling, tile->channel, y, x, count, slot);
    return slot;
}

/* Make the keys outside the image of COUNT keys of a row, which begin at pixel X: those before FROM and from TO on. */
static void NAME(pad)(const struct rank_tiling *tiling, int x, int from, int to, int count, KEY *keys)
{
    const int lanes = tiling->lanes;
    for (int k = from > 0 ? 0 : to; k < count; k += lanes) {
        if (k == from && from > 0)
            k = to;
        if (k >= count)
            break;
        const int at = border_index(x + k / lanes, tiling->run->in->width, tiling->run->plan->border);
        for (int lane = 0; lane < lanes; lane++)
            keys[k + lane] = (KEY)(at < 0 ? TO_KEY(0) : keys[(at - x) * lanes + lane]);
    }
}

/* Row ROW of the tile's input with all columns: of the image, or a copy in SLOT. */
static const KEY *NAME(padded_input)(const struct rank_tiling *tiling, const struct rank_tile *tile, int row, KEY *slot)
{
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int reach = (tile->x1 - tile->x0 + rank->width - 1) * tiling->lanes, left = tile->left * tiling->lanes;
    const int right = reach - tile->right * tiling->lanes;
    const KEY *keys = NAME(input)(tiling, tile, row, slot + left);
    if (left == 0 && right == reach)
        return keys;
    if (keys != slot + left)
        memcpy(slot + left, keys, (size_t)(right - left) * sizeof(KEY));
    NAME(pad)(tiling, tile->x0 - rank->anchor_x, left, right, reach, slot);
    return slot;
}

/* Where the keys of row Y of the tile's outputs are made: in the image or, if it does not hold them so, in SLOT. */
static KEY *NAME(output)(const struct rank_tiling *tiling, const struct rank_tile *tile, int y, KEY *slot)
{
    const struct plane *out = tiling->run->out;
    const int step = plane_step(out);
    return out->sample == SAMPLE_F32 || tiling->lanes != step
               ? slot
               : (KEY *)plane_row(out, tile->channel, y) + (ptrdiff_t)tile->x0 * step;
}

/* Write KEYS to row Y of the tile's outputs, unless they are there. */
static void NAME(put)(const struct rank_tiling *tiling, const struct rank_tile *tile, int y, const KEY *keys)
{
    const struct plane *out = tiling->run->out;
    const int step = plane_step(out), count = (tile->x1 - tile->x0) * tiling->lanes;
    KEY *to = (KEY *)plane_row(out, tile->channel, y) + (ptrdiff_t)tile->x0 * step;
    const int distance = tiling->lanes == step ? 1 : step;
    for (int k = 0; to != keys && k < count; k++)
        to[k * distance] = (KEY)FROM_KEY(keys[k]);
}

/* ---- What rows have at a column ---- */

typedef void NAME(combine)(const KEY *const *rows, int count, int columns, KEY *to);

/* TO[x] = what OP makes of the keys at x of all ROWS. */
#define COMBINE(name, OP)                                                                                              \
    __attribute__((unused)) static void NAME(name)(const KEY *const *rows, int count, int columns, KEY *to)            \
    {                                                                                                                  \
        for (int done = 0; done < count;) {                                                                            \
            const KEY *r[8] = {to};                                                                                    \
            int n = done > 0;                                                                                          \
            while (n < 8 && done < count)                                                                              \
                r[n++] = rows[done++];                                                                                 \
            switch (n) {                                                                                               \
                EACH(1, r[0][x])                                                                                       \
                EACH(2, OP(r[0][x], r[1][x]))                                                                          \
                EACH(3, OP(OP(r[0][x], r[1][x]), r[2][x]))                                                             \
                EACH(4, OP(OP(r[0][x], r[1][x]), OP(r[2][x], r[3][x])))                                                \
                EACH(5, OP(OP(OP(r[0][x], r[1][x]), OP(r[2][x], r[3][x])), r[4][x]))                                   \
                EACH(6, OP(OP(OP(r[0][x], r[1][x]), OP(r[2][x], r[3][x])), OP(r[4][x], r[5][x])))                      \
                EACH(7, OP(OP(OP(r[0][x], r[1][x]), OP(r[2][x], r[3][x])), OP(OP(r[4][x], r[5][x]), r[6][x])))         \
                EACH(8, OP(OP(OP(r[0][x], r[1][x]), OP(r[2][x], r[3][x])),                                             \
                           OP(OP(r[4][x], r[5][x]), OP(r[6][x], r[7][x]))))                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

typedef void NAME(join)(const KEY *ends, const KEY *keys, const KEY *row, int columns, KEY *to_keys, KEY *to);

/* ENDS are the keys of some rows of a window, and KEYS and ROW those of the others. Leaves the latter in TO_KEYS. */
#define JOIN(name, OP)                                                                                                 \
    static void NAME(name)(const KEY *ends, const KEY *keys, const KEY *row, int columns, KEY *to_keys, KEY *to)       \
    {                                                                                                                  \
        IVDEP for (int x = 0; x < columns; x++)                                                                        \
        {                                                                                                              \
            const KEY key = OP(keys[x], row[x]);                                                                       \
            to_keys[x] = key;                                                                                          \
            to[x] = OP(ends[x], key);                                                                                  \
        }                                                                                                              \
    }

#define EACH(n, value)                                                                                                 \
    case n:                                                                                                            \
        IVDEP for (int x = 0; x < columns; x++) to[x] = (KEY)(value);                                                  \
        break;
COMBINE(lowest, LOWER)
COMBINE(highest, HIGHER)
COMBINE(sum, SUM)
JOIN(join_lowest, LOWER)
JOIN(join_highest, HIGHER)

/* TO[x] = what COMBINE makes of WIDTH keys of ROW, STEP apart, from x on. A window of f g + r keys has f windows of g
 * keys each, and r single keys. SPARE has memory for the windows of all FACTORS. */
static void NAME(across)(NAME(combine) * combine, const uint8_t *factors, int width, int step, const KEY *row,
                         int columns, KEY *spare, KEY *to)
{
    const KEY *rows[FILTER_MAX];
    int count = 0;
    for (; *factors > 1; factors++) {
        const KEY *window[FILTER_MAX];
        const int windows = width / *factors, reach = columns + (windows - 1) * *factors * step;
        for (int k = windows * *factors; k < width; k++)
            rows[count++] = row + (ptrdiff_t)k * step;
        for (int k = 0; k < *factors; k++)
            window[k] = row + (ptrdiff_t)k * step;
        combine(window, *factors, reach, spare);
        row = spare;
        spare += round_up((size_t)reach, RANK_ROW_ALIGNMENT);
        step *= *factors;
        width = windows;
    }
    for (int k = 0; k < width; k++)
        rows[count++] = row + (ptrdiff_t)k * step;
    combine(rows, count, columns, to);
}

/* ---- Rectangles ---- */

/* The rows of a tile, as they go down: row K of a block of rows that is as high as the window is ROWS[K] until row K of
 * the next block replaces it. Row I of ENDS has the lowest, or highest, keys of the rows from I on of a block. FIRST
 * has those of the rows before K of the next block. */
struct NAME(rows) {
    const struct rank_tiling *tiling;
    int pitch;
    const KEY *rows[FILTER_MAX];
    KEY *ends, *first;
};

#define SLOT(n) (scratch + (ptrdiff_t)(n)*pitch)

/* Make the lowest, or highest, keys of the window's columns from column C on. Its first row is row K of a block. The
 * algorithm is that of van Herk, Gil and Werman. */
static void NAME(ends_of_columns)(struct NAME(rows) * r, int k, int c, int columns, KEY *to)
{
    const struct rank_run *run = r->tiling->run;
    const int height = run->plan->filter->rank.height, few = 5;
    const bool is_lowest = run->index == 0;
    NAME(combine) *combine = is_lowest ? NAME(lowest) : NAME(highest);
    NAME(join) *join = is_lowest ? NAME(join_lowest) : NAME(join_highest);
#define ENDS(k) (r->ends + (ptrdiff_t)(k)*r->pitch + c)
    if (height <= few) {
        const KEY *rows[5] = {NULL};
        for (int i = 0; i < height; i++)
            rows[i] = r->rows[i] + c;
        combine(rows, height, columns, to);
    } else if (k == 0) {
        int i = height - 2;
        const KEY *ends = r->rows[height - 1] + c;
        for (; i > 0; ends = ENDS(i - 1), i -= 2)
            join(r->rows[i - 1] + c, ends, r->rows[i] + c, columns, ENDS(i), i > 1 ? ENDS(i - 1) : to);
        if (i == 0)
            join(ends, r->rows[0] + c, r->rows[0] + c, columns, r->first + c, to);
    } else {
        join(k < height - 1 ? ENDS(k) : r->rows[k] + c, (k > 1 ? r->first : r->rows[0]) + c, r->rows[k - 1] + c,
             columns, r->first + c, to);
    }
}

#define ORDER(a, b)                                                                                                    \
    {                                                                                                                  \
        const KEY lower = LOWER(a, b);                                                                                 \
        (b) = HIGHER(a, b);                                                                                            \
        (a) = lower;                                                                                                   \
    }
/* Networks put keys in order. The compiler leaves out what makes none of the keys that are used. */
#define ORDER_4(a, b, c, d) ORDER(a, b) ORDER(c, d) ORDER(a, c) ORDER(b, d) ORDER(b, c)
#define ADD_FIFTH(a, b, c, d, e) ORDER(d, e) ORDER(c, d) ORDER(b, c) ORDER(a, b)
#define ADD_FIRST(a, b, c, d, e) ORDER(a, b) ORDER(b, c) ORDER(c, d) ORDER(d, e)

/* Put SIDE keys of a ROW, STEP apart, in order, from each column on. Keys number i are row i of ORDERED, RANK_PITCH
 * apart. */
static void NAME(order_neighbours)(const KEY *row, int side, int step, int columns, KEY *ordered)
{
    if (side == 3)
        IVDEP for (int x = 0; x < columns; x++)
        {
            KEY a = row[x], b = row[x + step], c = row[x + 2 * step];
            ORDER(a, b) ORDER(b, c) ORDER(a, b) ordered[x] = a;
            ordered[x + RANK_PITCH] = b;
            ordered[x + 2 * RANK_PITCH] = c;
        }
    else
        IVDEP for (int x = 0; x < columns; x++)
        {
            KEY a = row[x], b = row[x + step], c = row[x + 2 * step], d = row[x + 3 * step], e = row[x + 4 * step];
            ORDER_4(a, b, c, d)
            ADD_FIFTH(a, b, c, d, e)
            ordered[x] = a;
            ordered[x + RANK_PITCH] = b;
            ordered[x + 2 * RANK_PITCH] = c;
            ordered[x + 3 * RANK_PITCH] = d;
            ordered[x + 4 * RANK_PITCH] = e;
        }
}

#define MIDDLE(low, high, c) HIGHER(low, LOWER(high, c)) /* the median of two keys in order and C */

/* The medians of 3 x 3 keys of rows 0 to 2, and 1 to 3. In the rows, neighbours are in order. The median is in the
 * middle of their highest lowest key, their middle one and their lowest highest. */
static void NAME(median_3)(const KEY *const *rows, int columns, KEY *to_first, KEY *to_second)
{
    const KEY *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
    IVDEP for (int x = 0; x < columns; x++)
    {
        const KEY low = HIGHER(r1[x], r2[x]), high = LOWER(r1[x + 2 * RANK_PITCH], r2[x + 2 * RANK_PITCH]);
        KEY b = r1[x + RANK_PITCH], c = r2[x + RANK_PITCH];
        ORDER(b, c)
        KEY d = HIGHER(r0[x], low), e = LOWER(r0[x + 2 * RANK_PITCH], high), f = MIDDLE(b, c, r0[x + RANK_PITCH]);
        ORDER(d, e)
        to_first[x] = MIDDLE(d, e, f);
        d = HIGHER(r3[x], low), e = LOWER(r3[x + 2 * RANK_PITCH], high), f = MIDDLE(b, c, r3[x + RANK_PITCH]);
        ORDER(d, e)
        to_second[x] = MIDDLE(d, e, f);
    }
}

/* Keys number I of six rows: those of rows 1 to 4 in order, and with row 0 as p0 to p4, and with row 5 as q0 to q4. */
#define ORDER_ROWS(p, q, i, add, e0, e1, e2, e3, e4)                                                                   \
    KEY p##e1 = r1[x + (i)*RANK_PITCH], p##e2 = r2[x + (i)*RANK_PITCH], p##e3 = r3[x + (i)*RANK_PITCH],                \
        p##e4 = r4[x + (i)*RANK_PITCH], p##e0 = r0[x + (i)*RANK_PITCH], q##e0 = r5[x + (i)*RANK_PITCH];                \
    ORDER_4(p##e1, p##e2, p##e3, p##e4)                                                                                \
    KEY q##e1 = p##e1, q##e2 = p##e2, q##e3 = p##e3, q##e4 = p##e4;                                                    \
    add(p##0, p##1, p##2, p##3, p##4) add(q##0, q##1, q##2, q##3, q##4)

/* The medians of 5 x 5 keys of rows 0 to 4, and 1 to 5. In the 5 rows, neighbours are in order. When columns are in
 * order too, key i of the neighbours in row j, from 1, has at least i j - 1 keys below it and (6 - i) (6 - j) - 1
 * above it. So it may be the median in 13 places:
 *
 *     . . . a b
 *     . . a b c
 *     . a b c .
 *     a b c . .
 *     b c . . .
 *
 * The lower one of two keys a has 7 of these keys above it. So the median is in the middle of the highest a, the lowest
 * c and the five keys b. At least two keys b are not below a, and at least two are not above c. */
static void NAME(median_5)(const KEY *const *rows, int columns, KEY *to_first, KEY *to_second)
{
    const KEY *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3], *r4 = rows[4], *r5 = rows[5];
    IVDEP for (int x = 0; x < columns; x++)
    {
        ORDER_ROWS(f, g, 0, ADD_FIFTH, 4, 0, 1, 2, 3)
        ORDER_ROWS(h, i, 1, ADD_FIFTH, 4, 0, 1, 2, 3)
        KEY a = HIGHER(f3, h2), a2 = HIGHER(g3, i2);
        ORDER_ROWS(j, k, 2, ADD_FIFTH, 4, 0, 1, 2, 3)
        KEY c = LOWER(h4, j3), c2 = LOWER(i4, k3);
        a = HIGHER(a, j1);
        a2 = HIGHER(a2, k1);
        ORDER_ROWS(l, m, 3, ADD_FIRST, 0, 1, 2, 3, 4)
        a = HIGHER(a, l0);
        a2 = HIGHER(a2, m0);
        c = LOWER(c, l2);
        c2 = LOWER(c2, m2);
        ORDER_ROWS(n, o, 4, ADD_FIRST, 0, 1, 2, 3, 4)
        c = LOWER(c, n1);
        c2 = LOWER(c2, o1);
        ORDER_4(f4, h3, j2, l1)
        ADD_FIFTH(f4, h3, j2, l1, n0)
        ORDER_4(g4, i3, k2, m1)
        ADD_FIFTH(g4, i3, k2, m1, o0)
        ORDER(a, c)
        ORDER(a2, c2)
        a = HIGHER(j2, a);
        a2 = HIGHER(k2, a2);
        c = LOWER(l1, c);
        c2 = LOWER(m1, c2);
        to_first[x] = LOWER(a, c);
        to_second[x] = LOWER(a2, c2);
    }
}

/* Fetch COUNT keys from (Y, X) on into the caches. */
INLINE void NAME(fetch)(const struct plane *planes, int channel, int y, int x, int count)
{
    if (y < 0 || y >= planes->height)
        return;
    const KEY *keys = (const KEY *)plane_row(planes, channel, y) + (ptrdiff_t)x * plane_step(planes);
    for (int i = 0; i < count; i += 64 / (int)sizeof(KEY))
        __builtin_prefetch(keys + i);
}

/* Medians of 3 x 3 or 5 x 5 keys, for two rows at once. */
static void NAME(medians)(const struct rank_tiling *tiling, const struct rank_tile *tile, KEY *scratch)
{
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int lanes = tiling->lanes, columns = (tile->x1 - tile->x0) * lanes;
    const int side = rank->height, ring = side + 1, last = tile->y1 - tile->y0 + side - 2;
    const KEY *rows[6];
    KEY *line = scratch + 30 * RANK_PITCH, *slots = line + 2 * RANK_PITCH;
    for (int row = 0; row < tile->y1 - tile->y0 + side && !cpu_is_stopped(tiling->run->plan->stop); row++) {
        if (row <= last) {
            const KEY *keys = NAME(padded_input)(tiling, tile, row, line);
            NAME(order_neighbours)(keys, side, lanes, columns, scratch + row % ring * side * RANK_PITCH);
            NAME(fetch)
            (tiling->run->in, tile->channel, tile->y0 + row + RANK_AHEAD - rank->anchor_y, tile->x0, columns);
        }
        if (row < side || row % 2 == 0)
            continue;
        const int y = tile->y0 + row - side;
        for (int i = 0; i < ring; i++)
            rows[i] = scratch + (row + 1 + i) % ring * side * RANK_PITCH;
        KEY *to = NAME(output)(tiling, tile, y, slots), *to_second = slots + RANK_PITCH;
        if (y + 1 < tile->y1)
            to_second = NAME(output)(tiling, tile, y + 1, to_second);
        (side == 3 ? NAME(median_3) : NAME(median_5))(rows, columns, to, to_second);
        NAME(put)(tiling, tile, y, to);
        if (y + 1 < tile->y1)
            NAME(put)(tiling, tile, y + 1, to_second);
        for (int i = 2; i < 4; i++)
            NAME(fetch)(tiling->run->out, tile->channel, y + i, tile->x0, columns);
    }
}

/* A row is made in parts, so that caches have what is made of its columns. Meanwhile the next row is fetched. */
static void NAME(rectangle)(const struct rank_tiling *tiling, const struct rank_tile *tile, KEY *scratch)
{
    const struct plane *in = tiling->run->in;
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int lanes = tiling->lanes, height = rank->height, pitch = tiling->pitch, x = tile->x0 - rank->anchor_x;
    const int columns = (tile->x1 - tile->x0) * lanes, left = tile->left * lanes;
    const int right = columns + (rank->width - 1 - tile->right) * lanes;
    const int parts = (columns + RANK_PART - 1) / RANK_PART;
    const int size = (int)round_up((size_t)((columns + parts - 1) / parts), (size_t)(RANK_ROW_ALIGNMENT * lanes));
    NAME(combine) *combine = tiling->run->index == 0 ? NAME(lowest) : NAME(highest);
    struct NAME(rows) r = {.tiling = tiling, .pitch = pitch, .ends = SLOT(height), .first = SLOT(2 * height)};
    KEY *line = SLOT(2 * height + 2);
    for (int row = 0; row < height; row++)
        r.rows[row] = NAME(input)(tiling, tile, row, SLOT(row) + left) - left;
    for (int y = tile->y0; y < tile->y1 && !cpu_is_stopped(tiling->run->plan->stop); y++) {
        const int row = y - tile->y0, k = row % height, next = y + height - rank->anchor_y;
        KEY *out = NAME(output)(tiling, tile, y, SLOT(2 * height + 1));
        for (int c = 0; c < columns; c += size) {
            const int count = columns - c < size ? columns - c : size, end = count + (rank->width - 1) * lanes;
            const int from = left > c ? left - c : 0, to = right - c < end ? right - c : end; /* inside the image */
            NAME(fetch)(in, tile->channel, next, x + (c + from) / lanes, to - from);
            NAME(fetch)(tiling->run->out, tile->channel, y + 1, tile->x0 + c / lanes, count);
            NAME(ends_of_columns)(&r, k, c + from, to - from, line + from);
            NAME(pad)(tiling, x + c / lanes, from, to, end, line);
            NAME(across)
            (combine, tiling->factors, rank->width, lanes, line, count,
             line + round_up((size_t)end, RANK_ROW_ALIGNMENT), out + c);
        }
        NAME(put)(tiling, tile, y, out);
        if (y + 1 < tile->y1)
            r.rows[k] = NAME(input)(tiling, tile, row + height, SLOT(k) + left) - left;
    }
}

/* ---- Other footprints ---- */

/* Another footprint: each of its rows of samples is one or two windows of 2^n keys. */
static void NAME(ends)(const struct rank_tiling *tiling, const struct rank_tile *tile, KEY *scratch)
{
    const struct rank *rank = &tiling->run->plan->filter->rank;
    NAME(combine) *combine = tiling->run->index == 0 ? NAME(lowest) : NAME(highest);
    const int lanes = tiling->lanes, height = rank->height, pitch = tiling->pitch;
    const int columns = (tile->x1 - tile->x0) * lanes, reach = columns + (rank->width - 1) * lanes;
    const KEY *levels[7][FILTER_MAX];
    for (int row = 0; row < tile->y1 - tile->y0 + height - 1 && !cpu_is_stopped(tiling->run->plan->stop); row++) {
        levels[0][row % height] = NAME(padded_input)(tiling, tile, row, SLOT(row % height));
        for (int n = 1; 1 << n <= tiling->longest; n++) {
            const KEY *half = levels[n - 1][row % height];
            KEY *to = SLOT(n * height + row % height);
            combine((const KEY *[]){half, half + (lanes << (n - 1))}, 2, reach - ((1 << n) - 1) * lanes, to);
            levels[n][row % height] = to;
        }
        if (row < height - 1)
            continue;
        const int y = tile->y0 + row - (height - 1);
        KEY *out = NAME(output)(tiling, tile, y, SLOT(7 * height));
        const KEY *windows[64];
        int count = 0;
        for (int i = 0; i < tiling->sample_count; i++) {
            const struct rank_samples s = tiling->samples[i];
            const int n = 31 - __builtin_clz(s.count);
            const KEY *window = levels[n][(row + 1 + s.y) % height] + s.x * lanes;
            windows[count++] = window;
            if (s.count != 1 << n)
                windows[count++] = window + (s.count - (1 << n)) * lanes;
            if (count > 62) {
                combine(windows, count, columns, out);
                windows[0] = out;
                count = 1;
            }
        }
        combine(windows, count, columns, out);
        NAME(put)(tiling, tile, y, out);
    }
}

/* ---- Histograms ---- */

/* Any rank of any footprint. The number of a sample is its level or, for floats, the place of its key among those of
 * the tile. The cost depends on the footprint's edges. */
static void NAME(histogram)(const struct rank_tiling *tiling, const struct rank_tile *tile, char *scratch)
{
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int pitch = tiling->pitch, width = tile->x1 - tile->x0, height = tile->y1 - tile->y0;
    const int columns = width + rank->width - 1, rows = height + rank->height - 1;
    const size_t area = (size_t)rows * (size_t)pitch;
    const bool is_numbered = sizeof(KEY) > sizeof(uint16_t);
    struct histogram *h = (void *)scratch;
    uint16_t *in = (void *)(h + 1), *out = in + area;
    KEY *line = (void *)(out + area);
    uint32_t *keys = (void *)(line + pitch);
    uint64_t *pairs = (void *)(keys + area);
    int count = 0;
    for (int row = 0; row < rows; row++) {
        NAME(load)(tiling, tile->channel, tile->y0 + row - rank->anchor_y, tile->x0 - rank->anchor_x, columns, line);
        for (int k = row * pitch; k < row * pitch + columns; k++)
            if (is_numbered)
                pairs[count++] = (uint64_t)line[k - row * pitch] << 32 | (uint32_t)k;
            else
                in[k] = (uint16_t)line[k - row * pitch];
    }
    if (is_numbered)
        number_keys(pairs, pairs + count, count, keys, in);
    walk(tiling, width, height, sizeof(KEY) == 1 ? 4 : 8, in, h, out);
    for (int y = tile->y0; y < tile->y1; y++, out += pitch) {
        for (int k = 0; k < width; k++)
            line[k] = (KEY)(is_numbered ? keys[out[k]] : out[k]);
        NAME(put)(tiling, tile, y, line);
    }
}
