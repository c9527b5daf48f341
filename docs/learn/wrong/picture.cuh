/* SPDX-License-Identifier: MIT
 *
 * What the programs of this folder share: a blur of 9 x 9, and what reads a picture, blurs it on the GPU, compares all
 * outputs with the CPU's, and writes them. */
#pragma once

#include <cstdint>
#include <cstdio>

constexpr int size = 9, radius = size / 2; /* samples of a window, in a row and in a column */
constexpr int most = 1 << 24, noise = 640; /* samples of a picture at most; random samples, in a row and in a column */
static uint8_t in[most], out[most];

typedef void launcher(const uint8_t *in, uint8_t *out, int width, int height); /* starts a kernel */

/* A sample of the picture FROM. All samples outside are 0. */
static __host__ __device__ int sample(const uint8_t *from, int width, int height, int x, int y)
{
    return x >= 0 && x < width && y >= 0 && y < height ? from[y * width + x] : 0;
}

static __host__ __device__ uint8_t to_sample(int sum)
{
    const int level = (sum + size * size / 2) / (size * size); /* the mean, rounded */
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

/* Blur IN to OUT by LAUNCH. Returns how many outputs are wrong. */
static int blur(launcher *launch, int width, int height)
{
    const int count = width * height;
    uint8_t *gpu_in, *gpu_out;
    if (cudaMalloc(&gpu_in, count) != cudaSuccess || cudaMalloc(&gpu_out, count) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    cudaMemcpy(gpu_in, in, count, cudaMemcpyHostToDevice);
    launch(gpu_in, gpu_out, width, height);
    const cudaError_t status = cudaMemcpy(out, gpu_out, count, cudaMemcpyDeviceToHost); /* waits for the kernel */
    cudaFree(gpu_in), cudaFree(gpu_out);
    int wrong = 0, first = 0;
    for (int k = count; k-- > 0;) {
        int sum = 0;
        for (int i = -radius; i <= radius; i++)
            for (int j = -radius; j <= radius; j++)
                sum += sample(in, width, height, k % width + j, k / width + i);
        if (out[k] != to_sample(sum))
            wrong++, first = k;
    }
    printf("%d x %d: ", width, height);
    printf(wrong ? "%d outputs are wrong, the first at (%d, %d): %s\n" : "OK\n", wrong, first % width, first / width,
           cudaGetErrorString(status));
    return wrong;
}

/* Blur random samples, which also stay in the GPU's memories, and then the picture WORDS[1], to WORDS[2]. Returns the
 * exit status of the program. */
static int run(int count, char **words, launcher *launch)
{
    uint32_t random = 1;
    for (int k = 0; k < noise * noise; k++)
        in[k] = (random = 1664525 * random + 1013904223) >> 24;
    int wrong = blur(launch, noise, noise), width, height;
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    if (file == NULL || fscanf(file, "P5 %d %d 255", &width, &height) != 2 || width * height > most)
        return printf("give a PGM, and a name for the result\n"), 1;
    fgetc(file), fread(in, 1, width * height, file), fclose(file);
    wrong += blur(launch, width, height);
    file = fopen(words[2], "wb");
    fprintf(file, "P5\n%d %d\n255\n", width, height), fwrite(out, 1, width * height, file), fclose(file);
    return wrong > 0;
}
