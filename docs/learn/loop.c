/* SPDX-License-Identifier: MIT
 *
 * A loop in C: an output is the sum of 9 x 9 samples, each times its tap.
 *
 *     cc -O3 docs/learn/loop.c -o loop && ./loop */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { side = 4096, size = 9, pitch = side + 128 }; /* outputs, taps and samples, in a row and in a column */

static uint8_t in[pitch][pitch], out[side][side], expected[side][side]; /* every window is inside the input */
static int8_t taps[size][size];

/* sum / 1024 + 128, rounded. Division rounds towards 0, but a negative level becomes 0. */
static uint8_t to_sample(int sum)
{
    const int level = (sum + 128 * 1024 + 512) / 1024;
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

static void pixel_by_pixel(uint8_t to[side][side])
{
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            int sum = 0;
            for (int i = 0; i < size; i++)
                for (int j = 0; j < size; j++)
                    sum += taps[i][j] * in[y + i][x + j];
            to[y][x] = to_sample(sum);
        }
}

/* The same sums in another order: a tap is added to a whole row of them. */
static void row_by_row(uint8_t to[side][side])
{
    for (int y = 0; y < side; y++) {
        int sum[side] = {0};
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                for (int x = 0; x < side; x++)
                    sum[x] += taps[i][j] * in[y + i][x + j];
        for (int x = 0; x < side; x++)
            to[y][x] = to_sample(sum[x]);
    }
}

static void measure(const char *name, void (*convolve)(uint8_t to[side][side]), uint8_t to[side][side])
{
    double best = 1e9;
    for (int run = 0; run < 3; run++) {
        struct timespec start, end;
        timespec_get(&start, TIME_UTC);
        convolve(to);
        timespec_get(&end, TIME_UTC);
        const double ms = 1e3 * (double)(end.tv_sec - start.tv_sec) + 1e-6 * (double)(end.tv_nsec - start.tv_nsec);
        best = ms < best ? ms : best;
    }
    printf("%s: %.1f ms\n", name, best);
}

int main(void)
{
    uint32_t random = 1;
    for (int y = 0; y < pitch; y++)
        for (int x = 0; x < pitch; x++)
            in[y][x] = (random = 1664525 * random + 1013904223) >> 24;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            taps[i][j] = (size * i + j) * 37 % 255 - 127;

    measure("pixel by pixel", pixel_by_pixel, expected);
    measure("row by row", row_by_row, out);
    const int wrong = memcmp(out, expected, sizeof out) != 0;
    puts(wrong ? "the outputs differ" : "OK");
    return wrong;
}
