/*
 * entry.c: cuGetProcAddress in both of its forms, and what differs between builds; the only file that does.
 *
 * Asking for a version above the reported driver's is an invalid value. A function is found when it is not left out
 * of this build, not newer than the driver, and not newer than the version asked for. FAKE_OMIT holds the exported
 * names that are left out, each between spaces; the linker's version script hides the same ones. FAKE_STUB makes the
 * toolkit's stub: every function answers 34.
 */
#include "state.h"

#ifndef FAKE_OMIT
#define FAKE_OMIT " "
#endif
#ifndef FAKE_STUB
#define FAKE_STUB 0
#endif
#ifndef FAKE_DEFAULT_VERSION
#define FAKE_DEFAULT_VERSION 12040
#endif

const bool build_is_stub = FAKE_STUB;
const int build_version = FAKE_DEFAULT_VERSION;

/* Only their addresses are wanted here; the prototypes are where they are defined. */
#define DECLARE(base, version, spelling) extern char address_of_##spelling __asm__(#spelling);
DRIVER_FUNCTIONS(DECLARE)

static const struct {
    const char *base, *spelling;
    int version;
    void *address;
} table[] = {
#define ENTRY(base, version, spelling) {#base, #spelling, version, &address_of_##spelling},
    DRIVER_FUNCTIONS(ENTRY)};

static bool left_out(const char *spelling) {
    char name[96];
    snprintf(name, sizeof name, " %s ", spelling);
    return strstr(FAKE_OMIT, name) != NULL;
}

static CUresult look_up(call *c, const char *symbol, void **out, int version, uint64_t flags, int *status) {
    if (!symbol || !out || flags > 2 || version > G.version || version < 2000) return call_end(c, INVALID_VALUE);
    int best = -1;
    bool known = false;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        if (strcmp(table[i].base, symbol) || table[i].version > G.version || left_out(table[i].spelling)) continue;
        known = true;
        if (table[i].version <= version && (best < 0 || table[i].version > table[best].version)) best = i;
    }
    *out = best < 0 ? NULL : table[best].address;
    if (status) *status = best >= 0 ? QUERY_SUCCESS : known ? QUERY_VERSION_NOT_SUFFICIENT : QUERY_SYMBOL_NOT_FOUND;
    return call_end(c, best >= 0 || status ? SUCCESS : NOT_FOUND);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status) {
    call c;
    if (!call_begin(&c, F_cuGetProcAddress_v2, CALL_EARLY | CALL_QUIET)) return call_end(&c, c.result);
    int ignored;
    return look_up(&c, symbol, out, version, flags, status ? status : &ignored);
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    call c;
    if (!call_begin(&c, F_cuGetProcAddress, CALL_EARLY | CALL_QUIET)) return call_end(&c, c.result);
    return look_up(&c, symbol, out, version, flags, NULL);
}
