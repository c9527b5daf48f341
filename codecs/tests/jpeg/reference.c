/* SPDX-License-Identifier: MIT
 *
 * libjpeg-turbo, set up as the codec of that name does it. */
#include "reference.h"

#include "tests/lib/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* ---- Writing ---- */

static void copy_huffman(const JHUFF_TBL *from, struct jpeg_huffman *to)
{
    memcpy(to->counts, from->bits, sizeof to->counts);
    memcpy(to->symbols, from->huffval, sizeof to->symbols);
}

static void fill_layout(const struct jpeg_compress_struct *jpeg, struct jpeg_layout *layout)
{
    memset(layout, 0, sizeof *layout);
    layout->width = (int)jpeg->image_width;
    layout->height = (int)jpeg->image_height;
    layout->component_count = jpeg->num_components;
    layout->horizontal = jpeg->num_components == 1 ? 1 : jpeg->comp_info[0].h_samp_factor;
    layout->vertical = jpeg->num_components == 1 ? 1 : jpeg->comp_info[0].v_samp_factor;
    jpeg_layout_derive(layout);
    for (int i = 0; i < jpeg->num_components; i++) {
        struct jpeg_component *component = &layout->components[i];
        component->quantiser = jpeg->comp_info[i].quant_tbl_no;
        component->dc = jpeg->comp_info[i].dc_tbl_no;
        component->ac = jpeg->comp_info[i].ac_tbl_no;
        memcpy(layout->tables.quantisers[component->quantiser], jpeg->quant_tbl_ptrs[component->quantiser]->quantval,
               sizeof layout->tables.quantisers[0]);
        copy_huffman(jpeg->dc_huff_tbl_ptrs[component->dc], &layout->tables.dc[component->dc]);
        copy_huffman(jpeg->ac_huff_tbl_ptrs[component->ac], &layout->tables.ac[component->ac]);
    }
}

/* Find the data of the scan: after the segment SOS, up to the marker EOI. */
static void find_scan(struct reference *reference)
{
    const uint8_t *file = reference->file;
    size_t at = 2;
    while (file[at + 1] != 0xda)
        at += 2 + (size_t)(file[at + 2] << 8 | file[at + 3]);
    reference->first = at + 2 + (size_t)(file[at + 2] << 8 | file[at + 3]);
    reference->size = reference->file_size - 2 - reference->first;
}

void reference_encode(const struct pixels *pixels, int quality, int horizontal, int vertical,
                      struct jpeg_layout *layout, struct reference *reference)
{
    static const J_COLOR_SPACE spaces[] = {[1] = JCS_GRAYSCALE, JCS_GRAYSCALE, JCS_RGB, JCS_EXT_RGBX};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors); /* an error ends the program */
    jpeg_create_compress(&jpeg);
    unsigned char *file = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(&jpeg, &file, &size);
    jpeg.image_width = (JDIMENSION)pixels->width;
    jpeg.image_height = (JDIMENSION)pixels->height;
    jpeg.in_color_space = spaces[pixels->channels];
    jpeg.input_components = pixels->channels == 2 ? 1 : pixels->channels;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    if (jpeg.num_components == 3) {
        jpeg.comp_info[0].h_samp_factor = horizontal;
        jpeg.comp_info[0].v_samp_factor = vertical;
    }
    fill_layout(&jpeg, layout);
    jpeg_start_compress(&jpeg, TRUE);
    uint8_t *grey = allocate((size_t)pixels->width);
    for (int y = 0; y < pixels->height; y++) {
        JSAMPROW row = pixels->samples + (size_t)y * (size_t)pixels->width * (size_t)pixels->channels;
        if (pixels->channels == 2) {
            for (int x = 0; x < pixels->width; x++)
                grey[x] = row[2 * x];
            row = grey;
        }
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    free(grey);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    reference->file = file;
    reference->file_size = size;
    find_scan(reference);
}

/* ---- Reading ---- */

void reference_decode(const uint8_t *file, size_t size, struct pixels *pixels)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file, (unsigned long)size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    *pixels = (struct pixels){
        .width = (int)jpeg.output_width, .height = (int)jpeg.output_height, .channels = jpeg.output_components};
    pixels->samples = allocate(pixels_bytes(pixels));
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row =
            pixels->samples + (size_t)jpeg.output_scanline * (size_t)pixels->width * (size_t)pixels->channels;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
}
