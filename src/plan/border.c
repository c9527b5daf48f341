/* SPDX-License-Identifier: MIT */
#include "plan/border.h"

const char *border_name(enum border border)
{
    static const char *const names[BORDER_COUNT] = {
        [BORDER_REPLICATE] = "replicate", [BORDER_REFLECT] = "reflect", [BORDER_REFLECT101] = "reflect101",
        [BORDER_WRAP] = "wrap",           [BORDER_ZERO] = "zero",
    };
    return names[border];
}
