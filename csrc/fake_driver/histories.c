/*
 * histories.c: who used which bytes of an allocation, and whether the next use comes after them.
 *
 * A history is a row of segments, disjoint and sorted, each with its last write and the reads since; what lies between
 * them has not been used. A use splits the segments at its ends; a write makes one segment of all that it covers. If
 * all uses name the same range there is one segment, inside the history itself, and nothing is searched or split.
 *
 * Invariants: a check looks at every segment that the use overlaps, and names each earlier access once.
 */
#include "state.h"

#define CROWD 64 /* segments from which on those that no longer matter are looked for */

static bool before(const moment *a, const actor *who) { return who->clock->time[a->component] >= a->time; }
static moment now(const actor *who) { return (moment){who->component, who->clock->time[who->component], who->where}; }

/* ---- one segment ---- */

static moment *reads_of(segment *s) { return s->many ? s->many : s->few; }
static segment *segments_of(history *h) { return h->segment ? h->segment : &h->only; }

static void segment_drop(segment *s) {
    free(s->many);
    s->many = NULL;
    s->reads = 0;
}

static void add_read(segment *s, const actor *who) {
    moment *read = reads_of(s);
    for (uint32_t i = 0; i < s->reads; i++)
        if (read[i].component == who->component) {
            read[i] = now(who);
            return;
        }
    uint32_t few = sizeof s->few / sizeof s->few[0];
    if (s->reads == (s->many ? s->capacity : few)) {
        moment *larger = zeroed(2 * s->reads * sizeof *larger);
        memcpy(larger, read, s->reads * sizeof *larger);
        s->capacity = 2 * s->reads;
        free(s->many);
        read = s->many = larger;
    }
    read[s->reads++] = now(who);
}

/* ---- checks ---- */

typedef struct check {
    const char *act;
    const actor *who;
    const block *what;
    uint64_t from, to;
    uint32_t named; /* in `names` */
} check;

static moment names[8];

static void unordered(check *k, const char *earlier, const moment *a) {
    char one[160], other[160], text[96] = "the code of a module", part[64] = "";
    for (uint32_t i = 0; i < k->named; i++)
        if (names[i].component == a->component && names[i].time == a->time) return;
    if (k->named < sizeof names / sizeof names[0]) names[k->named++] = *a;
    if (k->what) {
        block_text(k->what, text);
        if (k->from || k->to < k->what->size)
            snprintf(part, sizeof part, " (bytes %llu to %llu)", (unsigned long long)k->from,
                     (unsigned long long)k->to);
    }
    violation_at("%s by %s is not ordered after %s by %s: %s%s", k->act, site_text(&k->who->where, one), earlier,
                 site_text(&a->where, other), text, part);
}

static void check_write(check *k, const segment *s) {
    if (s->written && !before(&s->write, k->who)) unordered(k, "the write", &s->write);
}

static void check_all(check *k, segment *s) {
    check_write(k, s);
    const moment *read = reads_of(s);
    for (uint32_t i = 0; i < s->reads; i++)
        if (!before(&read[i], k->who)) unordered(k, "the read", &read[i]);
}

/* ---- the row ---- */

static void clear(history *h) {
    segment *row = segments_of(h);
    for (uint32_t i = 0; i < h->count; i++) segment_drop(&row[i]);
    h->count = 0;
}

static void refresh(history *h) {
    if (h->epoch == G.epoch) return;
    clear(h);
    h->epoch = G.epoch;
    h->crowd = CROWD;
}

/* The first segment that ends after this byte. */
static uint32_t find(history *h, uint64_t at) {
    const segment *row = segments_of(h);
    uint32_t low = 0, high = h->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (row[middle].to <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

static segment *insert(history *h, uint32_t at, uint64_t from, uint64_t to) {
    if (!h->segment && h->count == 1) {
        h->capacity = 8;
        h->segment = zeroed(h->capacity * sizeof *h->segment);
        h->segment[0] = h->only;
    } else if (h->segment && h->count == h->capacity) {
        size_t capacity = h->capacity;
        h->segment = grow(h->segment, &capacity, h->count + 1u, sizeof *h->segment);
        h->capacity = (uint32_t)capacity;
    }
    segment *row = segments_of(h);
    memmove(&row[at + 1], &row[at], (h->count++ - at) * sizeof *row);
    row[at] = (segment){.from = from, .to = to};
    return &row[at];
}

static void split(history *h, uint64_t at) {
    uint32_t i = find(h, at);
    if (i == h->count || segments_of(h)[i].from >= at) return;
    segment *right = insert(h, i + 1, at, 0), *left = right - 1;
    *right = *left;
    right->from = left->to = at;
    if (!left->many) return;
    right->many = zeroed(left->capacity * sizeof *right->many);
    memcpy(right->many, left->many, left->reads * sizeof *right->many);
}

/* Forgets what comes before all that can happen from now on: what the host knows, when all threads are one. */
static void thin(history *h) {
    uint32_t remaining = 0;
    segment *row = segments_of(h);
    if (h->count < h->crowd || !G.threads_ordered) return;
    actor who = {.clock = &G.host};
    for (uint32_t i = 0; i < h->count; i++) {
        bool matters = row[i].written && !before(&row[i].write, &who);
        const moment *read = reads_of(&row[i]);
        for (uint32_t n = 0; n < row[i].reads && !matters; n++) matters = !before(&read[n], &who);
        if (matters) row[remaining++] = row[i];
        else segment_drop(&row[i]);
    }
    h->count = remaining;
    h->crowd = 2 * remaining < CROWD ? CROWD : 2 * remaining;
}

static bool fits(history *h, uint64_t from, uint64_t to) {
    refresh(h);
    if (!h->count) insert(h, 0, from, to);
    const segment *first = segments_of(h);
    return h->count == 1 && first->from == from && first->to == to;
}

/* ---- uses of the bytes from `from` up to `to` ---- */

void history_read(history *h, uint64_t from, uint64_t to, const actor *who, const block *what) {
    check k = {.act = "read", .who = who, .what = what, .from = from, .to = to};
    if (from >= to) return;
    record_use(what, from, to, false);
    if (fits(h, from, to)) {
        check_write(&k, segments_of(h));
        add_read(segments_of(h), who);
        return;
    }
    thin(h);
    split(h, from);
    split(h, to);
    for (uint32_t i = find(h, from); from < to; i++) {
        segment *s = i < h->count ? &segments_of(h)[i] : NULL;
        if (!s || s->from > from) s = insert(h, i, from, s && s->from < to ? s->from : to);
        check_write(&k, s);
        add_read(s, who);
        from = s->to;
    }
}

void history_write(history *h, uint64_t from, uint64_t to, const actor *who, const block *what) {
    check k = {.act = "write", .who = who, .what = what, .from = from, .to = to};
    if (from >= to) return;
    record_use(what, from, to, true);
    segment *s;
    if (fits(h, from, to)) {
        s = segments_of(h);
        check_all(&k, s);
    } else {
        thin(h);
        split(h, from);
        split(h, to);
        uint32_t first = find(h, from), end = first;
        segment *row = segments_of(h);
        for (; end < h->count && row[end].from < to; end++) {
            check_all(&k, &row[end]);
            segment_drop(&row[end]);
        }
        if (first == end) {
            s = insert(h, first, from, to);
        } else {
            memmove(&row[first + 1], &row[end], (h->count - end) * sizeof *row);
            h->count -= end - first - 1;
            s = &row[first];
            s->from = from;
            s->to = to;
        }
    }
    segment_drop(s);
    s->written = true;
    s->write = now(who);
}

/* The bytes are given up: all that used them must have come before. They have no history from here on. */
void history_free(history *h, uint64_t from, uint64_t to, const actor *who, const block *what) {
    check k = {.act = "release", .who = who, .what = what, .from = from, .to = to};
    refresh(h);
    if (from >= to) return;
    split(h, from);
    split(h, to);
    uint32_t first = find(h, from), end = first;
    segment *row = segments_of(h);
    for (; end < h->count && row[end].from < to; end++) {
        if (who) check_all(&k, &row[end]);
        segment_drop(&row[end]);
    }
    memmove(&row[first], &row[end], (h->count - end) * sizeof *row);
    h->count -= end - first;
}

void history_drop(history *h) {
    clear(h);
    free(h->segment);
    *h = (history){0};
}
