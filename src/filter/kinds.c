/* SPDX-License-Identifier: MIT
 *
 * The table of the kinds of steps, and the table of the words that begin filters with parameters. */
#include "filter/filter_internal.h"

const struct kind_of_step filter_kinds[STEP_KINDS] = {
    [STEP_CONVOLVE] = {.has_taps = true,
                       .has_border = true,
                       .describe = taps_describe,
                       .print = taps_print,
                       .flip = taps_flip,
                       .work = taps_work,
                       .float_error = taps_float_error,
                       .joins_planes = taps_join_planes},
    [STEP_RESIZE] = {.resizes = true,
                     .repeats_edge = true,
                     .takes = "that keep the size of a picture",
                     .is = "changes it",
                     .size = resize_size,
                     .describe = resize_describe,
                     .print = resize_print,
                     .work = resize_work,
                     .float_error = resize_float_error},
    [STEP_MOVE] = {.resizes = true,
                   .moves = true,
                   .takes_levels = true,
                   .takes = "that compute samples",
                   .is = "only moves them",
                   .size = move_size,
                   .describe = move_describe,
                   .print = move_print,
                   .joins_planes = move_joins_planes,
                   .clears = move_clears},
    [STEP_POINT] = {.takes = "that weigh neighbours",
                    .is = "changes each pixel by itself",
                    .describe = point_describe,
                    .print = point_print,
                    .joins_planes = point_joins_planes,
                    .clears = filter_uses_alpha},
    [STEP_PIXELATE] = {.takes = "that weigh neighbours",
                       .is = "makes squares of their mean",
                       .describe = squares_describe,
                       .print = squares_print,
                       .float_error = squares_float_error},
    [STEP_RANK] = {.has_border = true,
                   .takes_levels = true,
                   .takes = "that weigh neighbours",
                   .is = "puts them in order",
                   .describe = rank_describe,
                   .print = rank_print,
                   .flip = rank_flip},
};

/* A form of ranks with the parameters R and MORE, which MEANS something and is EXAMPLE. */
#define RANK_FORM(word, more, means, example, does, text)                                                              \
    {                                                                                                                  \
        word ":R" more "[:disk]", does,                                                                                \
            .title = text,                                                                                             \
            .usage = word                                                                                              \
            " takes a radius, a whole number of pixels from 1 to 63" means ", and optionally the word disk, "          \
            "whose radius may have a fraction, for example " word ":2" example " or " word ":2.5" example ":disk",     \
            .make = filter_make_rank                                                                                   \
    }

const struct filter_form filter_forms[] = {
    {"box:R", "mean of a square of 2R+1 by 2R+1 pixels", .title = "mean of a square",
     .usage = "takes one whole number from 0 to 850, for example box:2", .make = filter_generate, .generate = make_box,
     .parameters = 1},
    {"gaussian:SIGMA", "Gaussian blur with a standard deviation of SIGMA pixels", .title = "Gaussian blur",
     .usage = "takes one number above 0 and up to 170, for example gaussian:2.5", .make = filter_generate,
     .generate = make_gaussian, .parameters = 1, .has_filter16 = true},
    {"motion:LENGTH:ANGLE", "motion blur along a line, ANGLE in degrees counter-clockwise from the x axis",
     .title = "motion blur",
     .usage = "takes a length from 1 to 127 and an angle from -360 to 360 degrees, for example motion:15:30",
     .make = filter_generate, .generate = make_motion, .parameters = 2, .has_filter16 = true},
    {"disk:R", "mean of a disk of radius R pixels, as a lens out of focus makes it", .title = "mean of a disk",
     .usage = "takes one number above 0 and up to 63, for example disk:4.5", .make = filter_generate,
     .generate = make_disk, .parameters = 1, .has_filter16 = true},
    {"log:SIGMA", "Laplacian of Gaussian times SIGMA squared: finds spots of about SIGMA pixels",
     .title = "Laplacian of Gaussian", .usage = "takes one number from 0.2 to 15.75, for example log:1.5",
     .make = filter_generate, .generate = make_log, .parameters = 1, .has_filter16 = true},
    {"unsharp:SIGMA:AMOUNT[:THRESHOLD]", "the image plus AMOUNT times its difference from gaussian:SIGMA",
     .title = "unsharp mask",
     .usage = "takes a deviation above 0 and up to 170, an amount from 0.000001 to 100 and optionally a threshold from "
              "0 to 255 levels, for example unsharp:2:0.5 or unsharp:2:0.5:3",
     .make = filter_generate, .generate = make_unsharp, .parameters = 3, .optional = 1, .has_filter16 = true},
    {RESIZE_WORD ":SIZE[:WORD...]",
     "another size, in the same ratio: 1920x is the width, x1080 the height, 1920x1080 the box to fit into, or 50%; "
     "words: exact (that size, even if stretched), cover (fill the box), enlarge (also if the picture is smaller); "
     "kernels: lanczos3, lanczos2, cubic, mitchell, triangle, box, nearest, and Pillow's pillow-bicubic, -lanczos, "
     "-bilinear, -box, -hamming, -nearest, -mks2013 and -mks2021, or pillow12-bicubic and so on",
     .make = filter_make_resize},
    {THUMBNAIL_WORD ":SIZE[:WORD...]", "as resize, but the decoder of a JPEG may make it smaller before: much faster",
     .make = filter_make_resize},
    {"crop:SIZE[+X+Y][:WORD...]",
     "a part of the picture: 640x480+100+50, 640x480 or 50%; words: top, bottom, left, right, torchvision",
     .title = "a part of the picture",
     .usage = "crop takes two sides from 1 to 100000 pixels or a percentage up to 100%, and optionally the offset of "
              "the part or the words top, bottom, left, right and torchvision, for example crop:640x480+100+50, "
              "crop:640x480:top or crop:50%",
     .make = filter_make_move, .read = read_crop},
    {"cover:SIZE[:WORD...]",
     "resize so that the picture covers 400x300, then crop; words: top, bottom, left, right, and a kernel",
     .usage = "cover takes two sides from 1 to 100000 pixels, and optionally one of resize's kernels and the words "
              "top, bottom, left and right, for example cover:400x300 or cover:400x300:top",
     .make = filter_make_move},
    {"pad:SIZE[:COLOUR]", "the picture in the middle of 1920x1080; COLOUR: white, black or #ff8000",
     .title = "the picture in the middle of a larger one",
     .usage = "pad takes two sides from 1 to 100000 pixels and optionally a colour, white, black, #RGB or #RRGGBB, for "
              "example pad:1920x1080 or pad:1920x1080:#ff8000",
     .make = filter_make_move, .read = read_pad},
    {"turn:ANGLE", "turn clockwise by 90, 180 or 270 degrees", .title = "turned clockwise",
     .usage = "turn takes 90, 180 or 270 degrees clockwise, for example turn:90", .make = filter_make_move,
     .read = read_turn},
    {"mirror:AXIS", "x swaps left and right, y swaps top and bottom", .title = "mirrored",
     .usage = "mirror takes x to swap left and right, or y to swap top and bottom, for example mirror:x",
     .make = filter_make_move, .read = read_mirror},
    {"levels:BLACK:WHITE[:GAMMA]", "BLACK becomes black and WHITE white, levels of 255 or percent; GAMMA lightens",
     .title = "levels",
     .usage = "levels takes two levels from 0 to 255, or percentages, the lower one first, and optionally a gamma from "
              "0.1 to 10, for example levels:10:245 or levels:2%:98%:1.2",
     .make = filter_make_point, .write = write_levels, .parameters = 3, .optional = 1},
    {"gamma:G", "lightens the middle if G is above 1, darkens it if G is below: level^(1/G)", .title = "gamma",
     .usage = "gamma takes a number from 0.1 to 10, for example gamma:1.5", .make = filter_make_point,
     .write = write_gamma, .parameters = 1},
    {"brightness:P", "adds P percent of white, from -100 to 100", .title = "brightness",
     .usage = "brightness takes a percentage from -100 to 100, for example brightness:10", .make = filter_make_point,
     .write = write_brightness, .parameters = 1},
    {"contrast:P", "P percent more contrast around middle grey, or less from -100 on", .title = "contrast",
     .usage = "contrast takes a percentage from -100 to 1000, for example contrast:20", .make = filter_make_point,
     .write = write_contrast, .parameters = 1},
    {"saturation:P", "P percent more colour, or less from -100 on, which is grey", .title = "saturation",
     .usage = "saturation takes a percentage from -100 to 1000, for example saturation:20", .make = filter_make_point,
     .write = write_saturation, .parameters = 1},
    {"threshold:P", "white where grey is at least P percent, black elsewhere", .title = "threshold",
     .usage = "threshold takes a percentage above 0 and up to 100, for example threshold:50", .make = filter_make_point,
     .write = write_threshold, .parameters = 1},
    {"posterize:N", "N levels of each colour, at equal distances", .title = "posterized",
     .usage = "posterize takes a whole number of levels from 2 to 128, for example posterize:4",
     .make = filter_make_point, .write = write_posterize, .parameters = 1},
    {"tint:COLOUR", "grey in shades of a colour: white, #ff8000 or #f80", .title = "shades of a colour",
     .usage = "tint takes a colour, #RGB or #RRGGBB, for example tint:#ff8000", .make = filter_make_point,
     .write = write_tint, .parameters = 1},
    {"swap:RGB", "the channels that become red, green and blue, such as BGR or GGG", .title = "other channels",
     .usage = "swap takes three of the letters R, G and B, for example swap:BGR or swap:GGG", .make = filter_make_point,
     .write = write_swap, .parameters = 1},
    {"auto-levels[:CLIP]", "the darkest level of each colour becomes black, the lightest white; CLIP percent may clip",
     .title = "automatic levels",
     .usage = "auto-levels takes nothing, or the percentage of samples that may clip at each end, from 0 to 49, for "
              "example auto-levels:0.5",
     .make = filter_make_automatic},
    {"auto-contrast[:CLIP]", "as auto-levels, with one curve for all colours, which keeps their balance",
     .title = "automatic contrast",
     .usage = "auto-contrast takes nothing, or the percentage of samples that may clip at each end, from 0 to 49, for "
              "example auto-contrast:0.5",
     .make = filter_make_automatic},
    {"to-srgb[:black-point]", "the colours of the file's profile become those of sRGB, and the profile goes",
     .title = "colours of sRGB",
     .usage =
         "to-srgb takes nothing, or black-point, which makes the profile's darkest colour black: to-srgb:black-point",
     .make = filter_make_to_srgb},
    {"pixelate:N", "squares of N x N pixels that have their mean", .title = "squares of their mean",
     .usage = "pixelate takes a whole number of pixels from 1 to 4096, for example pixelate:16",
     .make = filter_make_squares},
    RANK_FORM("median", "", "", "", "the middle one of the samples in a square of 2R+1 by 2R+1 pixels, or in a disk",
              "median"),
    RANK_FORM("rank", ":P", ", a percentage from 0 to 100", ":25",
              "the sample P percent of the way from the lowest to the highest", "one sample of those in order"),
    RANK_FORM("erode", "", "", "", "the lowest sample: dark parts grow by R pixels", "lowest sample"),
    RANK_FORM("dilate", "", "", "", "the highest sample: light parts grow by R pixels", "highest sample"),
    RANK_FORM("open", "", "", "", "erode, then dilate: light specks vanish", "opening"),
    RANK_FORM("close", "", "", "", "dilate, then erode: dark specks vanish", "closing"),
    RANK_FORM("tophat", "", "", "", "the picture less its opening: light specks stay", "the picture less its opening"),
    RANK_FORM("blackhat", "", "", "", "the closing less the picture: dark specks show", "the closing less the picture"),
    RANK_FORM("outline", "", "", "", "dilate less erode: edges", "highest less lowest sample"),
    {.form = NULL},
};

const struct filter_form *form_find(const char *spec, size_t length)
{
    for (const struct filter_form *form = filter_forms; form->form != NULL; form++)
        if (strcspn(form->form, ":[") == length && memcmp(form->form, spec, length) == 0)
            return form;
    return NULL;
}
