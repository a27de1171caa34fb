/*
 * elf.c: machine code in form only. Reads the sections of a cubin for entries and their parameters, and writes such a
 * file.
 */
#include "state.h"

typedef struct elf_header {
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, program_offset, section_offset;
    uint32_t flags;
    uint16_t header_size, program_size, programs, section_size, sections, names;
} elf_header;

typedef struct elf_section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
    uint32_t link, info;
    uint64_t alignment, entry_size;
} elf_section;
_Static_assert(sizeof(elf_header) == 64 && sizeof(elf_section) == 64, "ELF");

#define MACHINE_CUDA 190
#define NO_BITS 8 /* the type of a section without bytes in the file, whose offset may be any */
#define INFO_PARAMETER 0x17 /* of the attributes in .nv.info.NAME: one parameter's ordinal, offset and size */
#define TEXT_PREFIX ".text."
#define INFO_PREFIX ".nv.info."
#define PTX_SECTION ".fake.ptx"

static int fail(image *out, const char *text) {
    snprintf(out->error, sizeof out->error, "%s", text);
    return INVALID_IMAGE;
}

/* The bytes that a section has in the file. */
static uint64_t bytes_of(const elf_section *s) {
    return s->type == NO_BITS ? 0 : s->size;
}

static void read_parameters(const unsigned char *at, uint64_t size, function *f) {
    const unsigned char *end = at + size;
    while (end - at >= 4) {
        uint16_t length = (uint16_t)(at[2] | at[3] << 8);
        if (at[0] != 4) length = 0; /* the value is in the header itself */
        if (end - at - 4 < length) return;
        if (at[1] == INFO_PARAMETER && length >= 12) {
            uint16_t ordinal, offset;
            uint32_t bits;
            memcpy(&ordinal, at + 8, 2);
            memcpy(&offset, at + 10, 2);
            memcpy(&bits, at + 12, 4);
            if (ordinal < 4096 && ordinal >= f->parameters) {
                f->parameter = realloc(f->parameter, (ordinal + 1u) * sizeof *f->parameter);
                if (!f->parameter) abort();
                memset(f->parameter + f->parameters, 0, (ordinal + 1u - f->parameters) * sizeof *f->parameter);
                f->parameters = ordinal + 1u;
            }
            if (ordinal < f->parameters) {
                f->parameter[ordinal] = (parameter){.offset = offset, .size = bits >> 18};
                if (offset + (bits >> 18) > f->parameter_bytes) f->parameter_bytes = offset + (bits >> 18);
            }
        }
        at += 4 + length;
    }
}

int image_read_elf(const unsigned char *data, image *out) {
    elf_header h;
    if (memcmp(data,
               "\x7f"
               "ELF",
               4))
        return fail(out, "not an ELF file");
    memcpy(&h, data, sizeof h);
    if (h.ident[4] != 2 || h.machine != MACHINE_CUDA || h.section_size != sizeof(elf_section) ||
        h.names >= h.sections)
        return fail(out, "not machine code for a device");
    bool second_layout = h.ident[7] == 0x41; /* of newer tools: the architecture is in another byte */
    int target = (int)(second_layout ? h.flags >> 8 & 0xFF : h.flags & 0xFF);
    if (target >= 50 && (target / 10 != G.capability / 10 || target > G.capability)) {
        fail(out, "the machine code is for another device");
        return NO_BINARY_FOR_GPU;
    }
    out->target = target;
    elf_section *sections = zeroed(h.sections * sizeof *sections);
    memcpy(sections, data + h.section_offset, h.sections * sizeof *sections);
    const char *names = (const char *)data + sections[h.names].offset;
    int result = SUCCESS;
    bool ours = false;
    for (int i = 0; i < h.sections && !ours; i++)
        if (!strcmp(names + sections[i].name, PTX_SECTION)) {
            uint64_t size = bytes_of(&sections[i]);
            const char *ptx = (const char *)data + sections[i].offset;
            bool ends = size && !ptx[size - 1];
            result = ends ? image_read_ptx(ptx, out) : fail(out, "a section of PTX that does not end");
            ours = true;
        }
    for (int i = 0; i < h.sections && !ours; i++) {
        const char *name = names + sections[i].name;
        if (strncmp(name, TEXT_PREFIX, strlen(TEXT_PREFIX))) continue;
        name += strlen(TEXT_PREFIX);
        function *f = image_function(out, name, strlen(name));
        for (int n = 0; n < h.sections; n++) {
            const char *info = names + sections[n].name;
            if (!strncmp(info, INFO_PREFIX, strlen(INFO_PREFIX)) && !strcmp(info + strlen(INFO_PREFIX), name))
                read_parameters(data + sections[n].offset, bytes_of(&sections[n]), f);
        }
    }
    free(sections);
    return result;
}

/* ---- writing ---- */

typedef struct buffer {
    unsigned char *data;
    size_t size, capacity;
} buffer;

static size_t append(buffer *b, const void *data, size_t size) {
    size_t at = b->size;
    b->data = grow(b->data, &b->capacity, b->size + size, 1);
    memcpy(b->data + at, data, size);
    b->size += size;
    return at;
}

static size_t append_text(buffer *b, const char *prefix, const char *text) {
    size_t at = append(b, prefix, strlen(prefix));
    append(b, text, strlen(text) + 1);
    return at;
}

static void add_section(elf_section *s, buffer *names, const char *prefix, const char *name, uint32_t type,
                        size_t offset, size_t size) {
    s->name = (uint32_t)append_text(names, prefix, name);
    s->type = type;
    s->offset = offset;
    s->size = size;
    s->alignment = 1;
}

typedef struct elf_symbol {
    uint32_t name;
    uint8_t kind, other; /* binding and type; the mark of an entry */
    uint16_t section;
    uint64_t value, size;
} elf_symbol;
_Static_assert(sizeof(elf_symbol) == 24, "ELF symbol");

/* An ELF with a section of code and one of attributes for each function, symbols for functions and variables, and
 * the PTX. */
unsigned char *elf_write(const image *from, size_t *size) {
    enum { NAMES = 1, PTX, SYMBOLS, VARIABLES, FIRST };
    static const unsigned char code[16];
    buffer file = {0}, names = {0}, symbols = {0};
    size_t sections = FIRST + 2 * from->functions;
    elf_section *section = zeroed(sections * sizeof *section);
    elf_header h = {
        .ident = {0x7F, 'E', 'L', 'F', 2, 1, 1, 0x33, 7}, .type = 2, .machine = MACHINE_CUDA, .version = 1};
    h.header_size = sizeof h;
    h.section_size = sizeof *section;
    h.sections = (uint16_t)sections;
    h.names = NAMES;
    h.flags = (uint32_t)(G.capability | G.capability << 16 |
                         (from->target_exact ? 0x800 : 0)); /* assembled for the device */
    append(&file, &h, sizeof h);
    append(&names, "", 1);
    append(&symbols, &(elf_symbol){0}, sizeof(elf_symbol));
    size_t length = strlen(from->ptx) + 1;
    add_section(&section[PTX], &names, "", PTX_SECTION, 1, append(&file, from->ptx, length), length);
    uint64_t variables = 0;
    for (size_t i = 0; i < from->variables; i++) {
        const variable *v = &from->variable[i];
        elf_symbol symbol = {
            (uint32_t)append_text(&names, "", v->name), 1 << 4 | 1, 0, VARIABLES, variables, v->size};
        append(&symbols, &symbol, sizeof symbol);
        variables += (v->size + 15) / 16 * 16;
    }
    add_section(&section[VARIABLES], &names, "", ".nv.global", 8, file.size, variables);
    for (size_t i = 0; i < from->functions; i++) {
        const function *f = &from->function[i];
        size_t number = FIRST + 2 * i, at = append(&file, code, sizeof code);
        add_section(&section[number], &names, TEXT_PREFIX, interned(f->name), 1, at, sizeof code);
        elf_symbol symbol = {
            section[number].name + (uint32_t)strlen(TEXT_PREFIX), 1 << 4 | 2, 0x10, (uint16_t)number, 0, sizeof code};
        append(&symbols, &symbol, sizeof symbol);
        at = file.size;
        for (uint32_t n = f->parameters; n-- > 0;) {
            unsigned char record[16] = {4, INFO_PARAMETER, 12, 0};
            uint16_t ordinal = (uint16_t)n, offset = (uint16_t)f->parameter[n].offset;
            uint32_t bits = f->parameter[n].size << 18 | 0x1F000;
            memcpy(record + 8, &ordinal, 2);
            memcpy(record + 10, &offset, 2);
            memcpy(record + 12, &bits, 4);
            append(&file, record, sizeof record);
        }
        add_section(&section[number + 1], &names, INFO_PREFIX, interned(f->name), 0x70000000, at, file.size - at);
    }
    add_section(&section[SYMBOLS], &names, "", ".symtab", 2, append(&file, symbols.data, symbols.size), symbols.size);
    section[SYMBOLS].link = NAMES;
    section[SYMBOLS].entry_size = sizeof(elf_symbol);
    add_section(&section[NAMES], &names, "", ".shstrtab", 3, 0, 0);
    section[NAMES].offset = append(&file, names.data, names.size);
    section[NAMES].size = names.size;
    while (file.size % 8) append(&file, "", 1);
    h.section_offset = append(&file, section, sections * sizeof *section);
    memcpy(file.data, &h, sizeof h);
    free(section);
    free(names.data);
    free(symbols.data);
    *size = file.size;
    return file.data;
}
