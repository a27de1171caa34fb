/*
 * images.c: the contents of a module's image: PTX text, directly or in a fatbin or in machine code that we made.
 *
 * PTX is split into words and punctuation; at the outermost level only the directives that matter are looked at,
 * bodies are skipped but for their shared memory.
 *
 * Invariants: an image that cannot be read leaves a text in
 * `error` and nothing else.
 */
#include "state.h"

#include <ctype.h>

/* ---- words ---- */

typedef struct reader {
    const char *at, *word;
    size_t length;
} reader;

static bool word_character(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* The next word or single character; false at the end. */
static bool next(reader *r) {
    for (;;) {
        while (isspace((unsigned char)*r->at)) r->at++;
        if (r->at[0] == '/' && r->at[1] == '/') {
            while (*r->at && *r->at != '\n') r->at++;
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            const char *end = strstr(r->at + 2, "*/");
            r->at = end ? end + 2 : r->at + strlen(r->at);
        } else {
            break;
        }
    }
    r->word = r->at;
    if (*r->at == '"') {
        r->at++;
        while (*r->at && *r->at != '"') r->at++;
        if (*r->at) r->at++;
    } else if (word_character(*r->at)) {
        while (word_character(*r->at)) r->at++;
    } else if (*r->at) {
        r->at++;
    }
    r->length = (size_t)(r->at - r->word);
    return r->length > 0;
}

static bool is(const reader *r, const char *text) {
    return strlen(text) == r->length && !memcmp(r->word, text, r->length);
}

/* Bytes of a type such as .u32 or .f16x2; 0 when it is none. */
static uint32_t type_size(const reader *r) {
    static const char *const types[] = {".u8",  ".s8",   ".b8",  ".pred",  ".u16", ".s16", ".b16",
                                        ".f16", ".bf16", ".u32", ".s32",   ".b32", ".f32", ".u64",
                                        ".s64", ".b64",  ".f64", ".f16x2", ".b128"};
    static const uint8_t sizes[] = {1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 4, 16};
    for (size_t i = 0; i < sizeof sizes; i++)
        if (is(r, types[i])) return sizes[i];
    return 0;
}

/* ---- declarations ---- */

typedef struct declaration {
    const char *name;
    size_t name_length, size;
    uint32_t alignment;
    bool array, address;
} declaration;

/* `[.align N] .type [.ptr ...] name [N][N]`, up to the mark that ends it, which stays in the reader. */
static bool declare(reader *r, declaration *d) {
    uint32_t element = 0;
    size_t count = 1;
    *d = (declaration){0};
    while (next(r) && !is(r, ",") && !is(r, ")") && !is(r, ";") && !is(r, "=")) {
        if (is(r, ".align")) {
            if (!next(r)) return false;
            uint32_t alignment = (uint32_t)strtoul(r->word, NULL, 0);
            if (!d->address) d->alignment = alignment; /* after .ptr it is the pointee's */
        } else if (is(r, ".ptr")) {
            d->address = true;
        } else if (is(r, "[")) {
            if (!next(r)) return false;
            d->array = true;
            if (is(r, "]")) {
                count = 0;
                continue;
            }
            count *= strtoull(r->word, NULL, 0);
            if (!next(r) || !is(r, "]")) return false;
        } else if (type_size(r)) {
            element = type_size(r);
        } else if (r->word[0] != '.') {
            d->name = r->word;
            d->name_length = r->length;
        }
    }
    if (!d->alignment) d->alignment = element;
    d->size = element * count;
    return d->name && element;
}

static bool contains(const char *name, size_t length, const char *part) {
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++)
        if (!memcmp(name + i, part, n)) return true;
    return false;
}

static void classify(const char *entry, size_t entry_length, const declaration *d, parameter *p) {
    const char *name = d->name;
    size_t length = d->name_length;
    if (length > entry_length && !memcmp(name, entry, entry_length)) {
        name += entry_length;
        length -= entry_length;
    }
    p->kind = contains(name, length, "_update_")  ? FAKE_UPDATE
              : contains(name, length, "_write_") ? FAKE_WRITE
              : contains(name, length, "_read_")  ? FAKE_READ
                                                  : FAKE_SCALAR;
    p->map = p->kind != FAKE_SCALAR && d->size == sizeof(CUtensorMap);
    if (p->kind != FAKE_SCALAR && !p->map && d->size != 8) p->kind = FAKE_SCALAR;
    p->bytes = p->kind == FAKE_SCALAR && (d->size == 4 || d->size == 8) && contains(name, length, "_bytes_");
}

function *image_function(image *i, const char *name, size_t length) {
    for (size_t n = 0; n < i->functions; n++) {
        const char *other = interned(i->function[n].name);
        if (strlen(other) == length && !memcmp(other, name, length)) return &i->function[n];
    }
    i->function = realloc(i->function, (i->functions + 1) * sizeof *i->function);
    if (!i->function) abort();
    function *f = &i->function[i->functions++];
    *f = (function){.name = intern(name, length), .max_dynamic_shared = 48 << 10, .carveout = -1};
    f->faults = length >= 6 && !memcmp(name, "fault_", 6);
    f->sets_condition = length >= 13 && !memcmp(name, "set_condition", 13);
    return f;
}

static int fail(image *out, int code, const char *text) {
    snprintf(out->error, sizeof out->error, "ptxas fatal   : %s", text);
    return code;
}

/* After `.entry`. */
static bool read_entry(reader *r, image *out) {
    if (!next(r)) return false;
    const char *name = r->word;
    size_t length = r->length;
    size_t before = out->functions;
    function *f = image_function(out, name, length);
    if (out->functions == before || !next(r)) return false; /* a second one of this name */
    if (is(r, "(")) {
        do {
            declaration d;
            if (!next(r)) return false;
            if (is(r, ")")) break;
            if (!is(r, ".param") || !declare(r, &d) || !d.size) return false;
            f->parameter = realloc(f->parameter, (f->parameters + 1) * sizeof *f->parameter);
            if (!f->parameter) abort();
            parameter *p = &f->parameter[f->parameters++];
            *p = (parameter){0};
            p->size = (uint32_t)d.size;
            p->offset = (f->parameter_bytes + d.alignment - 1) / d.alignment * d.alignment;
            f->parameter_bytes = p->offset + p->size;
            classify(name, length, &d, p);
        } while (is(r, ","));
        if (!is(r, ")")) return false;
        if (!next(r)) return false;
    }
    while (!is(r, "{"))
        if (is(r, ";") || !next(r)) return is(r, ";");
    for (int depth = 1; depth;) {
        if (!next(r)) return false;
        declaration d;
        if (is(r, "{")) depth++;
        else if (is(r, "}")) depth--;
        else if (is(r, ".shared") && declare(r, &d)) f->static_shared += (uint32_t)d.size;
    }
    return true;
}

static bool skip_braces(reader *r) {
    for (int depth = 1; depth;) {
        if (!next(r)) return false;
        if (is(r, "{")) depth++;
        else if (is(r, "}")) depth--;
    }
    return true;
}

static bool read_variable(reader *r, bool external, image *out) {
    declaration d;
    if (!declare(r, &d)) return false;
    while (!is(r, ";"))
        if (!next(r)) return false;
    if (external || !d.size) return true;
    out->variable = realloc(out->variable, (out->variables + 1) * sizeof *out->variable);
    if (!out->variable) abort();
    variable *v = &out->variable[out->variables++];
    *v = (variable){.name = zeroed(d.name_length + 1), .size = d.size};
    memcpy(v->name, d.name, d.name_length);
    return true;
}

/* The newest ISA that the reported driver assembles. */
int driver_isa(void) {
    int major = G.version / 1000, minor = G.version % 1000 / 10;
    if (major <= 11) return 70 + (minor > 8 ? 8 : minor);
    if (major == 12) return 80 + (minor > 5 ? minor - 1 : minor);
    return (major - 4) * 10 + minor;
}

int image_read_ptx(const char *text, image *out) {
    reader r = {.at = text};
    bool external = false;
    out->ptx = zeroed(strlen(text) + 1);
    memcpy(out->ptx, text, strlen(text));
    /* Newer assemblers look at comments too. */
    for (const char *at = text, *line = text; *at; at++) {
        if ((unsigned char)*at < 0x80) continue;
        char place[128];
        int number = 1;
        for (; line < at; line++) number += *line == '\n';
        snprintf(place, sizeof place, "Unexpected non-ASCII character encountered on line %d", number);
        return fail(out, INVALID_PTX, place);
    }
    while (next(&r)) {
        bool good = true;
        if (is(&r, ".version")) {
            good = next(&r);
            char *end;
            long major = strtol(r.word, &end, 10);
            out->isa = (int)(major * 10 + (*end == '.' ? strtol(end + 1, NULL, 10) : 0));
        } else if (!out->isa) {
            return fail(out, INVALID_PTX, "Missing .version directive at start of file");
        } else if (is(&r, ".target")) {
            good = next(&r) && r.length > 3 && !memcmp(r.word, "sm_", 3);
            if (good) {
                char *end;
                out->target = (int)strtol(r.word + 3, &end, 10);
                out->target_exact = end < r.word + r.length && *end == 'a';
            }
        } else if (is(&r, ".entry")) {
            good = read_entry(&r, out);
        } else if (is(&r, ".global") || is(&r, ".const")) {
            good = read_variable(&r, external, out);
        } else if (is(&r, "{")) {
            good = skip_braces(&r);
        } else if (r.word[0] == '.' || word_character(r.word[0]) || strchr("(),;[]=<>|+-!:@", r.word[0])) {
            external = is(&r, ".extern") || (external && !is(&r, ";"));
            continue;
        } else {
            good = is(&r, "}") ? false : r.word[0] == '"';
        }
        external = false;
        if (!good) {
            char place[128];
            snprintf(place, sizeof place, "Parsing error near '%.*s'", (int)(r.length < 60 ? r.length : 60), r.word);
            return fail(out, INVALID_PTX, place);
        }
    }
    if (!out->isa) return fail(out, INVALID_PTX, "Missing .version directive at start of file");
    if (!out->target) return fail(out, INVALID_PTX, "Missing .target directive");
    if (out->isa > driver_isa()) {
        char unsupported[128];
        snprintf(unsupported, sizeof unsupported, "Unsupported .version %d.%d; current version is '%d.%d'",
                 out->isa / 10, out->isa % 10, driver_isa() / 10, driver_isa() % 10);
        return fail(out, UNSUPPORTED_PTX_VERSION, unsupported);
    }
    if (out->target > G.capability || (out->target_exact && out->target != G.capability))
        return fail(out, INVALID_PTX, "SM version specified by .target is higher than default SM version assumed");
    return SUCCESS;
}

/* ---- containers ---- */

#define FATBIN_MAGIC 0xBA55ED50u
#define FATBIN_WRAPPER 0x466243B1u
#define ELF_MAGIC 0x464C457Fu
#define FATBIN_COMPRESSED 0xA000u
#define FATBIN_EXACT 0x100000u /* for this architecture alone */

typedef struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
} fatbin_header;

typedef struct fatbin_member {
    uint16_t kind, version; /* 1 is PTX, 2 is machine code */
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, unused;
    uint16_t minor, major;
    uint32_t target, name_offset, name_size;
    uint64_t flags, reserved, decompressed_size;
} fatbin_member;
_Static_assert(sizeof(fatbin_header) == 16 && sizeof(fatbin_member) == 64, "fatbin");

static int image_read_fatbin(const unsigned char *data, image *out) {
    fatbin_header h;
    memcpy(&h, data, sizeof h);
    const unsigned char *ptx = NULL, *code = NULL;
    uint64_t ptx_size = 0;
    for (uint64_t at = 0; at + sizeof(fatbin_member) <= h.size;) {
        fatbin_member m;
        const unsigned char *start = data + h.header_size + at;
        memcpy(&m, start, sizeof m);
        if (m.header_size < 16 || m.size > h.size) return fail(out, INVALID_IMAGE, "damaged fatbin");
        bool plain = m.kind == 1 && m.size > 8 && !memcmp(start + m.header_size, ".version", 8);
        if (plain || !(m.flags & FATBIN_COMPRESSED)) { /* a mark alone does not keep a driver from opening a member */
            if (m.kind == 1 && !ptx) {
                ptx = start + m.header_size;
                ptx_size = m.size;
            }
            if (m.kind == 2 && !code) code = start + m.header_size;
        }
        at += m.header_size + m.size;
    }
    if (!ptx) return code ? image_read_elf(code, out) : SUCCESS;
    char *text = zeroed(ptx_size + 1);
    memcpy(text, ptx, ptx_size);
    int result = image_read_ptx(text, out);
    free(text);
    return result;
}

/* Reads the image into `out`; what it answers is what the load answers. The caller drops it in either case. */
int image_read(const void *data, image *out) {
    uint32_t magic;
    *out = (image){0};
    if (*(const char *)data == 0) return fail(out, INVALID_IMAGE, "empty image");
    if (!memcmp(data,
                "\x7f"
                "E",
                2))
        return image_read_elf(data, out);
    if (!memcmp(data, "\x50\xED", 2)) {
        memcpy(&magic, data, 4);
        return magic == FATBIN_MAGIC ? image_read_fatbin(data, out) : fail(out, INVALID_IMAGE, "unknown image");
    }
    if (!memcmp(data, "\xB1\x43", 2)) {
        const unsigned char *inner;
        memcpy(&magic, data, 4);
        if (magic != FATBIN_WRAPPER) return fail(out, INVALID_IMAGE, "unknown image");
        memcpy(&inner, (const char *)data + 8, sizeof inner);
        return image_read_fatbin(inner, out);
    }
    return image_read_ptx(data, out);
}

void image_drop(image *i) {
    for (size_t n = 0; n < i->functions; n++) free(i->function[n].parameter);
    for (size_t n = 0; n < i->variables; n++) free(i->variable[n].name);
    free(i->function);
    free(i->variable);
    free(i->ptx);
    *i = (image){0};
}

/* ---- making images ---- */

static size_t deliver(const void *data, size_t size, void *out, size_t capacity) {
    if (out && size <= capacity) memcpy(out, data, size);
    return size;
}

size_t fake_make_cubin(const char *ptx, void *out, size_t capacity) {
    image i = {0};
    size_t size = 0;
    control_begin();
    if (image_read_ptx(ptx, &i) == SUCCESS) {
        unsigned char *elf = elf_write(&i, &size);
        deliver(elf, size, out, capacity);
        free(elf);
    }
    image_drop(&i);
    control_end();
    return size;
}

size_t fake_make_fatbin(const char *ptx, void *out, size_t capacity) {
    image i = {0};
    size_t size = 0;
    control_begin();
    if (image_read_ptx(ptx, &i) == SUCCESS) {
        size_t length = (strlen(ptx) + 8) / 8 * 8; /* with its zero, filled up */
        fatbin_header h = {FATBIN_MAGIC, 1, sizeof h, sizeof(fatbin_member) + length};
        fatbin_member m = {.kind = 1, .version = 0x101, .header_size = sizeof m, .size = length};
        m.major = (uint16_t)(i.isa / 10);
        m.minor = (uint16_t)(i.isa % 10);
        m.target = (uint32_t)i.target;
        m.flags = i.target_exact ? FATBIN_EXACT : 0;
        size = sizeof h + h.size;
        unsigned char *data = zeroed(size);
        memcpy(data, &h, sizeof h);
        memcpy(data + sizeof h, &m, sizeof m);
        memcpy(data + sizeof h + sizeof m, ptx, strlen(ptx));
        deliver(data, size, out, capacity);
        free(data);
    }
    image_drop(&i);
    control_end();
    return size;
}
