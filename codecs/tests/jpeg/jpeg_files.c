/* SPDX-License-Identifier: MIT */
#include "jpeg_files.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> /* after jpeglib.h, as in src/codec/libjpeg_turbo.c */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* ---- Making ---- */

/* Smooth waves, edges, and noise. */
static void fill_row(const struct jpeg_recipe *recipe, int y, uint32_t *seed, uint8_t *row)
{
    for (int x = 0; x < recipe->width; x++)
        for (int c = 0; c < recipe->components; c++) {
            const int wave = (x * (c + 2) + y * 3 + (int)(recipe->seed & 63)) & 255, edge = (x / 13 + y / 7 + c) & 1;
            const int plain = ((wave < 128 ? wave : 255 - wave) + 120 * edge) & 255;
            const int noise = (int)(next_random(seed) & 255);
            const int sample = (plain * (255 - recipe->noise) + noise * recipe->noise) / 255;
            row[x * recipe->components + c] = (uint8_t)(recipe->is_flat ? (int)(recipe->seed >> 8 * c) : sample);
        }
}

static void write_picture(struct jpeg_compress_struct *jpeg, const struct jpeg_recipe *recipe)
{
    uint8_t *row = malloc((size_t)recipe->width * (size_t)recipe->components);
    uint32_t seed = recipe->seed;
    jpeg_start_compress(jpeg, TRUE);
    for (int y = 0; y < recipe->height; y++) {
        fill_row(recipe, y, &seed, row);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    free(row);
}

/* A coefficient. Kinds: 1: a few small ones; 2: runs of zeros as long as they can be; 3: the largest that Huffman codes
 * of the standard hold; 4: all are there; 5: DC alone. */
static int make_coefficient(uint32_t kind, int k, uint32_t *seed)
{
    const uint32_t random = next_random(seed);
    const int sign = random & 1 ? 1 : -1;
    if (kind == 5 || k == 0)
        return k > 0 ? 0 : sign * (int)(random >> 2 & 1023);
    if (kind == 1)
        return (random >> 1 & 7) == 0 ? sign * (int)(random >> 4 & 15) : 0;
    if (kind == 2)
        return (random >> 1 & 31) == 0 ? sign * (int)(random >> 6 & 3) : 0;
    if (kind == 3)
        return (random >> 1 & 3) == 0 ? sign * 1023 : 0;
    return sign * (int)(1 + (random >> 3 & ((1u << (random >> 12 & 7)) - 1)));
}

static void write_coefficients(struct jpeg_compress_struct *jpeg, const struct jpeg_recipe *recipe)
{
    jvirt_barray_ptr arrays[3];
    uint32_t seed = recipe->seed;
    for (int c = 0; c < recipe->components; c++) {
        jpeg_component_info *part = &jpeg->comp_info[c];
        const int horizontal = c == 0 ? recipe->horizontal : 1, vertical = c == 0 ? recipe->vertical : 1;
        const JDIMENSION across =
            (JDIMENSION)((recipe->width + 8 * recipe->horizontal - 1) / (8 * recipe->horizontal) * horizontal);
        const JDIMENSION down =
            (JDIMENSION)((recipe->height + 8 * recipe->vertical - 1) / (8 * recipe->vertical) * vertical);
        arrays[c] = jpeg->mem->request_virt_barray((j_common_ptr)jpeg, JPOOL_IMAGE, TRUE, across, down,
                                                   (JDIMENSION)part->v_samp_factor);
    }
#if JPEG_LIB_VERSION >= 70
    jpeg_calc_jpeg_dimensions(jpeg); /* which jpeg_start_compress calls, and jpeg_write_coefficients expects */
#endif
    jpeg_write_coefficients(jpeg, arrays);
    for (int c = 0; c < recipe->components; c++)
        for (JDIMENSION y = 0; y < jpeg->comp_info[c].height_in_blocks; y++) {
            JBLOCKARRAY rows = jpeg->mem->access_virt_barray((j_common_ptr)jpeg, arrays[c], y, 1, TRUE);
            for (JDIMENSION x = 0; x < jpeg->comp_info[c].width_in_blocks; x++)
                for (int k = 0; k < DCTSIZE2; k++)
                    rows[0][x][k] = (JCOEF)make_coefficient(recipe->coefficients, k, &seed);
        }
}

/* Let table NUMBER of AC have 256 symbols, in an order of its own. All their codes have 11 bits, but the last. */
static void set_long_table(struct jpeg_compress_struct *jpeg, int number)
{
    JHUFF_TBL **table = &jpeg->ac_huff_tbl_ptrs[number];
    if (*table == NULL)
        *table = jpeg_alloc_huff_table((j_common_ptr)jpeg);
    memset((*table)->bits, 0, sizeof(*table)->bits);
    (*table)->bits[11] = 255;
    (*table)->bits[12] = 1;
    for (int i = 0; i < 256; i++)
        (*table)->huffval[i] = (UINT8)(i + number);
}

uint8_t *make_jpeg(const struct jpeg_recipe *recipe, size_t *size)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    jpeg.err = jpeg_std_error(&errors);
    errors.trace_level = -1; /* print nothing about large quantisers */
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &length);
    jpeg.image_width = (JDIMENSION)recipe->width;
    jpeg.image_height = (JDIMENSION)recipe->height;
    jpeg.input_components = recipe->components;
    jpeg.in_color_space = recipe->components == 1 ? JCS_GRAYSCALE : recipe->components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    if (recipe->is_ycck)
        jpeg_set_colorspace(&jpeg, JCS_YCCK);
    if (recipe->scale > 0) /* quantisers of 16 bits, if they are large */
        jpeg_set_linear_quality(&jpeg, recipe->scale, FALSE);
    else
        jpeg_set_quality(&jpeg, recipe->quality, FALSE);
    jpeg.comp_info[0].h_samp_factor = recipe->horizontal;
    jpeg.comp_info[0].v_samp_factor = recipe->vertical;
    if (recipe->components == 4) {
        jpeg.comp_info[3].h_samp_factor = recipe->horizontal;
        jpeg.comp_info[3].v_samp_factor = recipe->vertical;
    }
    for (int i = 1; i < recipe->components && recipe->shares_tables; i++)
        jpeg.comp_info[i].quant_tbl_no = jpeg.comp_info[i].dc_tbl_no = jpeg.comp_info[i].ac_tbl_no = 0;
    for (int i = 0; i < recipe->components && recipe->long_tables > 0; i++)
        jpeg.comp_info[i].ac_tbl_no = i < recipe->long_tables ? i : recipe->long_tables - 1;
    for (int i = 0; i < recipe->long_tables; i++)
        set_long_table(&jpeg, i);
    jpeg.restart_interval = (unsigned)recipe->restart_mcus;
    jpeg.restart_in_rows = recipe->restart_rows;
    jpeg.optimize_coding = recipe->is_optimised;
    jpeg.arith_code = recipe->is_arithmetic;
    if (recipe->is_progressive)
        jpeg_simple_progression(&jpeg);
    if (recipe->coefficients > 0)
        write_coefficients(&jpeg, recipe);
    else
        write_picture(&jpeg, recipe);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *size = length;
    return bytes;
}

/* ---- Reading ---- */

struct errors {
    struct jpeg_error_mgr manager; /* first, because the library knows only this */
    jmp_buf back;
};

static void errors_exit(j_common_ptr jpeg)
{
    longjmp(((struct errors *)jpeg->err)->back, 1);
}

/* As in src/codec/libjpeg_turbo.c. */
static void errors_emit(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    const bool is_arithmetic = ((j_decompress_ptr)jpeg)->arith_code;
    if (level < 0 && (code != JWRN_EXTRANEOUS_DATA || is_arithmetic) && code != JWRN_ADOBE_XFORM &&
        code != JWRN_JFIF_MAJOR && code != JWRN_NOT_SEQUENTIAL)
        errors_exit(jpeg);
}

static void copy_table(const JHUFF_TBL *from, unsigned number, struct jpeg_huffman *tables, unsigned *known)
{
    if (from == NULL)
        return;
    memcpy(tables[number].counts + 1, from->bits + 1, 16);
    memcpy(tables[number].symbols, from->huffval, sizeof tables[number].symbols);
    *known |= 1u << number;
}

/* Copy the tables and the components. */
static void copy_headers(const struct jpeg_decompress_struct *jpeg, struct jpeg_headers *headers)
{
    for (unsigned i = 0; i < JPEG_TABLES; i++) {
        const JQUANT_TBL *quantisers = jpeg->quant_tbl_ptrs[i];
        if (quantisers != NULL) {
            memcpy(headers->tables.quantisers[i], quantisers->quantval, sizeof headers->tables.quantisers[i]);
            headers->quantisers |= 1u << i;
        }
        copy_table(jpeg->dc_huff_tbl_ptrs[i], i, headers->tables.dc, &headers->dc);
        copy_table(jpeg->ac_huff_tbl_ptrs[i], i, headers->tables.ac, &headers->ac);
    }
    headers->is_sequential = !jpeg->progressive_mode && !jpeg->arith_code &&
                             jpeg->comps_in_scan == jpeg->num_components && jpeg->Ss == 0 && jpeg->Se == 63 &&
                             jpeg->Ah == 0 && jpeg->Al == 0;
    for (int i = 0; headers->is_sequential && i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
        headers->components[i] = (struct jpeg_frame_component){
            .id = (uint8_t)component->component_id,
            .horizontal = (uint8_t)component->h_samp_factor,
            .vertical = (uint8_t)component->v_samp_factor,
            .quantiser = (uint8_t)component->quant_tbl_no,
            .dc = (uint8_t)component->dc_tbl_no,
            .ac = (uint8_t)component->ac_tbl_no,
        };
        headers->is_sequential = jpeg->cur_comp_info[i] == component;
    }
}

static bool try_headers(struct jpeg_decompress_struct *jpeg, struct errors *errors, const uint8_t *bytes, size_t size,
                        struct jpeg_headers *headers)
{
    if (setjmp(errors->back) != 0)
        return false;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, size);
    jpeg_read_header(jpeg, TRUE);
    *headers = (struct jpeg_headers){
        .width = (int)jpeg->image_width,
        .height = (int)jpeg->image_height,
        .component_count = jpeg->num_components,
        .restart_interval = (int)jpeg->restart_interval,
        .has_jfif = jpeg->saw_JFIF_marker,
        .has_adobe = jpeg->saw_Adobe_marker,
        .adobe_transform = jpeg->Adobe_transform,
        .scan = size - jpeg->src->bytes_in_buffer,
    };
    copy_headers(jpeg, headers);
    headers->scan_size = size - headers->scan; /* with the marker that ends the file */
    headers->is_sequential &= headers->scan_size >= 2 && memcmp(bytes + size - 2, "\xff\xd9", 2) == 0;
    headers->scan_size -= headers->is_sequential ? 2 : 0;
    return true;
}

bool read_jpeg_headers(const uint8_t *bytes, size_t size, struct jpeg_headers *headers)
{
    struct jpeg_decompress_struct jpeg;
    struct errors errors;
    jpeg.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = errors_exit;
    errors.manager.emit_message = errors_emit;
    const bool done = try_headers(&jpeg, &errors, bytes, size, headers);
    jpeg_destroy_decompress(&jpeg);
    return done;
}

struct decoding {
    struct jpeg_decompress_struct jpeg;
    struct errors errors;
    int shrink;
    uint8_t *samples;
};

static void decode(struct decoding *decoding, const uint8_t *bytes, size_t size)
{
    struct jpeg_decompress_struct *jpeg = &decoding->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : jpeg->num_components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg->scale_num = 1;
    jpeg->scale_denom = 1u << decoding->shrink;
    jpeg_start_decompress(jpeg);
    const size_t row = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    decoding->samples = malloc(row * jpeg->output_height);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW out = decoding->samples + jpeg->output_scanline * row;
        jpeg_read_scanlines(jpeg, &out, 1);
    }
    jpeg_finish_decompress(jpeg);
}

static bool try_decode(struct decoding *decoding, const uint8_t *bytes, size_t size)
{
    if (setjmp(decoding->errors.back) != 0)
        return false;
    decode(decoding, bytes, size);
    return true;
}

uint8_t *decode_jpeg(const uint8_t *bytes, size_t size, int shrink, int *width, int *height, int *components)
{
    struct decoding decoding = {.shrink = shrink};
    decoding.jpeg.err = jpeg_std_error(&decoding.errors.manager);
    decoding.errors.manager.error_exit = errors_exit;
    decoding.errors.manager.emit_message = errors_emit;
    const bool done = try_decode(&decoding, bytes, size);
    *width = (int)decoding.jpeg.output_width;
    *height = (int)decoding.jpeg.output_height;
    *components = decoding.jpeg.output_components;
    jpeg_destroy_decompress(&decoding.jpeg);
    if (done)
        return decoding.samples;
    free(decoding.samples);
    return NULL;
}
