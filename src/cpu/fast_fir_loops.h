/* SPDX-License-Identifier: MIT
 *
 * The inner loops of fast FIRs: fast_fir.h describes them. */
#ifndef GPUCONV_CPU_FAST_FIR_LOOPS_H
#define GPUCONV_CPU_FAST_FIR_LOOPS_H

#include "cpu/outputs.h"

/* The sums of a block for a group of rows. */
struct fir_sums {
    ints of[FIR_GROUP_MAX][4];
};

/* Add a row, times its taps for LOW to HIGH of two outputs of a product. TAPS is those for the first one. */
INLINE void multiply_fir_row(ints sums[2][4], const char *from, const union cell *taps, int columns, const int low,
                             const int high)
{
    const union cell *end = taps + columns;
    TWICE
    do {
        FOR_UNROLLED (v, 0, 4) {
            const shorts samples = load_shorts(from + vector_offset(ARITHMETIC_WORDS, v));
            FOR_UNROLLED (a, low, high + 1)
                sums[a][v] = multiply_pairs_add(sums[a][v], samples, (shorts)repeat(taps[-a * columns].i));
        }
        from += sizeof *taps;
    } while (++taps < end);
}

/* Compute the sums of the block from column X on: all products. */
INLINE void sum_products(const struct pass *pass, const void *const *rows, int x, struct fir_sums *sums)
{
    const struct fast_fir f = pass->fir;
    const union cell *taps = f.taps;
    const int step = 1 << f.levels;
    for (int a = 0; a < 2 * step; a++)
        FOR_UNROLLED (v, 0, 4)
            sums->of[a][v] = repeat(pass->start);
    struct fir_product p = {0};
    do {
        const void *const *row = rows + (step - 1 - p.free) * pass->row_count + (p.ones | p.free);
        const size_t from = (size_t)x * sizeof(int16_t);
        ints of[2][4] = {{{0}}};
        multiply_fir_row(of, (const char *)*row + from, taps, f.columns, 0, 0);
        for (int r = 1; r < f.height; r++) {
            row += step;
            taps += f.columns;
            multiply_fir_row(of, (const char *)*row + from, taps, f.columns, 0, 1);
        }
        row += step;
        taps += f.columns;
        multiply_fir_row(of, (const char *)*row + from, taps, f.columns, 1, 1);
        int s = p.free;
        do {
            s = (s - 1) & p.free;
            FOR_UNROLLED (a, 0, 2)
                FOR_UNROLLED (v, 0, 4) {
                    ints *sum = &sums->of[(p.ones | s) + a * step][v];
                    *sum = add(*sum, of[a][v]);
                }
        } while (s != p.free);
    } while (fir_next(&p, step));
}

static void run_fir(const struct pass *pass, const void *const *rows, int width, bool past, void *const *outs)
{
    const struct finish finish = pass->finish;
    for (int x = 0; x < width; x += BLOCK) {
        struct fir_sums sums;
        uint8_t rest[BLOCK];
        const bool whole = width - x >= BLOCK;
        sum_products(pass, rows, x, &sums);
        for (int a = 0; a < pass->group; a++) {
            uint8_t *to = (uint8_t *)outs[a] + x;
            finish_bytes(&finish, false, sums.of[a], LAYOUT_TWOS, past && whole, whole ? to : rest);
            if (!whole)
                memcpy(to, rest, (size_t)(width - x));
        }
    }
    if (past)
        fence_past();
}

#endif
