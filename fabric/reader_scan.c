// SPDX-License-Identifier: Apache-2.0
#include "fabric/reader_priv.h"

bool scan_uint(struct scan *s, uint32_t max, uint32_t *ret_v)
{
    const char *p = s->p;
    uint64_t v = 0;
    while (p < s->end && *p >= '0' && *p <= '9') {
        v = v * 10 + (uint64_t)(*p++ - '0');
        if (v > max)
            return false;
    }
    if (p == s->p)
        return false;
    s->p = p;
    *ret_v = (uint32_t)v;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool scan_hex(struct scan *s, uint64_t *ret_v)
{
    const char *p = s->p, *start;
    uint64_t v = 0;
    int d;

    if (s->end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    for (start = p; p < s->end && (d = hex_digit(*p)) >= 0; p++) {
        if (p - start == 16)
            return false;
        v = v << 4 | (uint64_t)d;
    }
    if (p == start)
        return false;
    s->p = p;
    *ret_v = v;
    return true;
}

bool scan_number(struct scan *s, uint64_t *ret_v)
{
    if (s->end - s->p > 2 && s->p[0] == '0' && (s->p[1] == 'x' || s->p[1] == 'X'))
        return scan_hex(s, ret_v);
    const char *p = s->p;
    unsigned base = p < s->end && *p == '0' ? 8 : 10;
    uint64_t v = 0;
    while (p < s->end && *p >= '0' && (unsigned)(*p - '0') < base) {
        if (v > UINT64_MAX / 10 - 1)
            return false;
        v = v * base + (uint64_t)(*p++ - '0');
    }
    if (p == s->p)
        return false;
    s->p = p;
    *ret_v = v;
    return true;
}

bool scan_between(struct scan *s, char open, char close, struct span *ret_inner)
{
    if (s->p == s->end || *s->p != open)
        return false;
    const char *e = memchr(s->p + 1, close, (size_t)(s->end - s->p - 1));
    if (!e)
        return false;
    *ret_inner = (struct span){s->p + 1, (uint32_t)(e - s->p - 1)};
    s->p = e + 1;
    return true;
}

bool scan_quoted_greedy(struct scan *s, struct span *ret_inner)
{
    if (s->p == s->end || *s->p != '"')
        return false;
    const char *e = memrchr(s->p + 1, '"', (size_t)(s->end - s->p - 1));
    if (!e)
        return false;
    *ret_inner = (struct span){s->p + 1, (uint32_t)(e - s->p - 1)};
    s->p = e + 1;
    return true;
}

bool scan_word(struct scan *s, struct span *ret_word)
{
    const char *p = s->p;
    while (p < s->end && *p != ' ' && *p != '\t')
        p++;
    if (p == s->p)
        return false;
    *ret_word = (struct span){s->p, (uint32_t)(p - s->p)};
    s->p = p;
    return true;
}

bool span_is(struct span s, const char *lit)
{
    return s.len == strlen(lit) && memcmp(s.p, lit, s.len) == 0;
}

void lines_init(struct lines *l, const char *text, size_t len)
{
    *l = (struct lines){.p = text, .end = text + len, .fresh = true};
}

bool lines_next(struct lines *l, struct scan *ret_line)
{
    if (l->p >= l->end)
        return false;
    if (l->fresh) {
        // Looked for once a line, not once a segment: a text of nothing but CRs must stay linear.
        l->lf = memchr(l->p, '\n', (size_t)(l->end - l->p));
        if (!l->lf)
            l->lf = l->end;
        l->line++;
        l->fresh = false;
    }
    const char *start = l->p;
    const char *cr = memchr(start, '\r', (size_t)(l->lf - start));
    const char *stop = cr ? cr : l->lf;
    while (cr && cr < l->lf && *cr == '\r')
        cr++;
    if (!cr || cr == l->lf) {
        l->p = l->lf < l->end ? l->lf + 1 : l->end;
        l->fresh = true;
    } else {
        l->p = cr;
    }
    *ret_line = (struct scan){start, stop};
    return true;
}

uint8_t width_code(uint32_t lanes)
{
    switch (lanes) {
    case 1:
        return 1;
    case 4:
        return 2;
    case 8:
        return 4;
    case 12:
        return 8;
    case 2:
        return 16;
    default:
        return 0;
    }
}

bool speed_by_name(struct span name, struct raw_link *link)
{
    static const struct {
        const char *name;
        uint8_t speed, ext;
        bool fdr10;
    } table[] = {
        {"SDR", 1, 0, false},  {"DDR", 2, 0, false}, {"QDR", 4, 0, false},
        {"FDR10", 4, 0, true}, {"FDR", 4, 1, false}, {"EDR", 4, 2, false},
        {"HDR", 4, 4, false},  {"NDR", 4, 8, false}, {"XDR", 4, 16, false},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (span_is(name, table[i].name)) {
            link->speed = table[i].speed;
            link->ext = table[i].ext;
            link->fdr10 = table[i].fdr10;
            return true;
        }
    }
    return false;
}

bool scan_rate(struct scan *s, struct raw_link *ret_link, bool *ret_unknown)
{
    struct scan at = *s;
    struct raw_link link = {0};
    struct span name;
    uint32_t lanes;

    if (!scan_uint(&at, 99, &lanes) || !scan_ch(&at, 'x'))
        return false;
    scan_ws(&at);
    bool known = scan_word(&at, &name) && speed_by_name(name, &link);
    link.width = width_code(lanes);
    *ret_unknown = !known || !link.width;
    *ret_link = link;
    *s = at;
    return true;
}
