/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of plots; svg.h has the contract. */
#include "svg.h"

void svg_begin(FILE *to, size_t width, size_t height)
{
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %zu %zu\" "
		"width=\"%zu\" height=\"%zu\" font-family=\"sans-serif\">\n",
		width, height, width, height);
	fputs("<style>.title{font-size:16px;font-weight:bold}"
	      ".heading{font-size:13px;font-weight:bold}.tick{font-size:11px;fill:#333}"
	      ".grid{stroke:#eee}.decade{stroke:#bbb}"
	      ".raw{fill:none;stroke:#888;stroke-dasharray:4 3}</style>\n"
	      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
	      to);
}

void svg_end(FILE *to)
{
	fputs("</svg>\n", to);
}

/* Bytes that no XML may hold, or only in another spelling. */
static void put_escaped(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", to);
		else if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '>')
			fputs("&gt;", to);
		else if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			fputc('?', to);
		else
			fputc(*text, to);
	}
}

void svg_text(FILE *to, double x, double y, const char *attributes, const char *text)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
	put_escaped(to, text);
	fputs("</text>\n", to);
}

void svg_line(FILE *to, const double at[4], const char *attributes)
{
	fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", at[0],
		at[1], at[2], at[3], attributes);
}
