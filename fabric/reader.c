// SPDX-License-Identifier: Apache-2.0
#include "fabric/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/reader_priv.h"
#include "lib/arena.h"
#include "lib/err.h"
#include "lib/xalloc.h"

#define INCLUDE_DEPTH 8
#define INCLUDE_MAX 256

void reader_note(struct reader *r, enum finding_severity s, const char *code, unsigned file, uint32_t line,
                 const char *fmt, ...)
{
    struct note_code *c = NULL;
    for (unsigned i = 0; i < r->num_codes && !c; i++)
        if (r->code[i].code == code || strcmp(r->code[i].code, code) == 0)
            c = &r->code[i];
    if (!c && r->num_codes < NOTE_CODES) {
        c = &r->code[r->num_codes++];
        *c = (struct note_code){.code = code, .severity = s};
    }
    if (c && line && ++c->n > NOTES_PER_CODE) // formatting millions of lines that nobody will read takes long
        return;

    char text[400], where[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (line)
        snprintf(where, sizeof(where), "%.280s:%u", r->file_name[file], line);
    else
        snprintf(where, sizeof(where), "%.280s", r->file_name[file]);
    findings_add(r->out, s, code, where, "%s", text);
}

static void notes_finish(struct reader *r)
{
    for (unsigned i = 0; r->out && i < r->num_codes; i++) {
        const struct note_code *c = &r->code[i];
        if (c->n <= NOTES_PER_CODE)
            continue;
        uint32_t more = c->n - NOTES_PER_CODE;
        char text[100];
        snprintf(text, sizeof(text), "and %u more of this kind", more);
        struct finding it = {
            .severity = c->severity, .code = c->code, .where = r->file_name[0], .text = text, .count = more};
        struct findings one = {.item = &it, .n = 1, .cap = 1, .total = more};
        findings_merge(r->out, &one);
    }
}

const char *excerpt(const struct scan *line, char buf[72])
{
    size_t n = (size_t)(line->end - line->p), i;
    for (i = 0; i < n && i < 60; i++)
        buf[i] = line->p[i] >= ' ' && line->p[i] < 127 ? line->p[i] : '.';
    strcpy(buf + i, n > 60 ? "…" : "");
    return buf;
}

static const char *dialect(const char *text, size_t len, uint32_t *ret_lines)
{
    struct lines l;
    struct scan s;
    const char *kind = NULL;

    lines_init(&l, text, len);
    while (!kind && lines_next(&l, &s)) {
        scan_ws(&s);
        switch (topo_kind(s)) {
        case TOPO_IBNETDISCOVER:
            kind = "ibnetdiscover";
            break;
        case TOPO_IBSIM:
            kind = "ibsim";
            break;
        case TOPO_NO:
            if (ports_is_line(s))
                kind = "ports-report";
            else if (lst_is_line(s))
                kind = "lst";
            break;
        }
    }
    *ret_lines = l.line;
    return kind;
}

const char *reader_dialect(const char *text, size_t len)
{
    uint32_t n;
    return dialect(text, len, &n);
}

static const struct fabric *parse(const char *text, size_t len, const char *name, bool may_include,
                                  struct findings *out, struct err *e)
{
    uint32_t n;
    if (len > READER_MAX_BYTES) {
        err_set(e, -EFBIG, name, "larger than %u MiB", READER_MAX_BYTES >> 20);
        return NULL;
    }
    const char *kind = dialect(text, len, &n);
    if (!kind) {
        err_set(
            e, -EINVAL, name,
            "no node record in %u lines; expected the output of ibnetdiscover (not -l) or ibnetdiscover -p, "
            "an ibsim .net or an ibdiagnet .lst",
            n);
        return NULL;
    }

    struct reader r = {.arena = arena_new(), .out = out, .bytes = len, .may_include = may_include};
    r.file_name = xcalloc(INCLUDE_MAX + 1, sizeof(*r.file_name));
    r.text = xcalloc(INCLUDE_MAX + 1, sizeof(*r.text));
    r.file_name[r.num_files++] = name;
    r.g.sm_index = ID_NONE;
    u64map_init(&r.g.by_guid, NULL, 1024);
    if (strcmp(kind, "ports-report") == 0)
        ports_read(&r, text, len, 0);
    else if (strcmp(kind, "lst") == 0)
        lst_read(&r, text, len, 0);
    else
        topo_read(&r, text, len, 0, strcmp(kind, "ibsim") == 0);
    const struct fabric *f = graph_finish(&r, e);
    notes_finish(&r);

    for (unsigned i = 0; i < r.num_texts; i++)
        buf_done(&r.text[i]);
    u64map_done(&r.g.by_guid);
    free(r.g.node);
    free(r.g.edge);
    free(r.g.order);
    free(r.text);
    free(r.file_name);
    arena_free(r.arena);
    return f;
}

const struct fabric *reader_parse(const char *text, size_t len, const char *name,
                                  struct findings *ret_findings, struct err *e)
{
    return parse(text, len, name, false, ret_findings, e);
}

const struct fabric *reader_load(const char *path, struct findings *ret_findings, struct err *e)
{
    struct buf b = {0};
    int r = buf_read_file(&b, path, READER_MAX_BYTES);
    const struct fabric *f = NULL;

    if (r == -EFBIG)
        err_set(e, r, path, "larger than %u MiB", READER_MAX_BYTES >> 20);
    else if (r < 0)
        err_set(e, r, path, "cannot read: %s", strerror(-r));
    else
        f = parse(b.data ? b.data : "", b.len, path, true, ret_findings, e);
    buf_done(&b);
    return f;
}

// Only files at or below the folder of the including file: a topology must not be a way to other files.
static bool path_is_plain(struct span s)
{
    if (!s.len || s.len > 255 || s.p[0] == '/' || memchr(s.p, '\0', s.len))
        return false;
    for (uint32_t i = 0; i + 1 < s.len; i++)
        if (s.p[i] == '.' && s.p[i + 1] == '.' && (i == 0 || s.p[i - 1] == '/') &&
            (i + 2 == s.len || s.p[i + 2] == '/'))
            return false;
    return true;
}

static int include_read(struct reader *r, const char *path, struct buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
    struct stat st;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        rc = -errno;
    else if (!S_ISREG(st.st_mode)) // a device or pipe could block or never end
        rc = -EINVAL;
    else
        rc = buf_read_fd(b, fd, READER_MAX_BYTES - r->bytes);
    close(fd);
    return rc;
}

bool reader_include(struct reader *r, struct span inc, unsigned file, uint32_t line, struct span *ret_text,
                    unsigned *ret_file)
{
    const char *why = NULL;
    if (!r->may_include)
        why = "a topology that does not come from a file may not include others";
    else if (!path_is_plain(inc))
        why = "only files in the same folder or below may be included";
    else if (r->depth >= INCLUDE_DEPTH || r->num_files > INCLUDE_MAX)
        why = "included too deep or too often";
    if (why) {
        reader_note(r, FINDING_ERROR, "include-refused", file, line, "include \"%.*s\" is not followed: %s",
                    (int)(inc.len < 100 ? inc.len : 100), inc.p, why);
        return false;
    }

    const char *slash = strrchr(r->file_name[file], '/');
    int dir_len = slash ? (int)(slash - r->file_name[file]) + 1 : 0;
    char *path = xasprintf("%.*s%.*s", dir_len, r->file_name[file], (int)inc.len, inc.p);
    struct buf *b = &r->text[r->num_texts];
    int rc = include_read(r, path, b);
    if (rc < 0) {
        reader_note(r, FINDING_ERROR, "include-failed", file, line, "cannot read %.200s: %s", path,
                    strerror(-rc));
        buf_done(b);
        free(path);
        return false;
    }
    r->num_texts++;
    r->bytes += b->len;
    r->file_name[r->num_files] = arena_strdup(r->arena, path);
    free(path);
    *ret_file = r->num_files++;
    *ret_text = (struct span){b->data ? b->data : "", (uint32_t)b->len};
    return true;
}
