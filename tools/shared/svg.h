/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the plots of all commands are made of. Well-formed XML whatever a text contains. One thread.
 */
#ifndef WEFT_TOOLS_SVG_H
#define WEFT_TOOLS_SVG_H

#include <stddef.h>
#include <stdio.h>

/*
 * svg_begin - begin a picture of so many units, which are pixels where it is shown as it is
 * It has the classes title, heading and tick for texts, grid and decade for lines, raw for a floor.
 */
void svg_begin(FILE *to, size_t width, size_t height);
void svg_end(FILE *to);

/* svg_text - @attributes: XML, such as a class; @text: any bytes */
void svg_text(FILE *to, double x, double y, const char *attributes, const char *text);

/* svg_line - @at: x and y of its beginning, then of its end */
void svg_line(FILE *to, const double at[4], const char *attributes);

#endif
