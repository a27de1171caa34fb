/* Checks for C tests: a check that fails prints where and what, and ends the program with status 1. */

#ifndef SELVEDGE_TESTS_CHECK_H
#define SELVEDGE_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "selvedge.h"

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);          \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

/* Checks the status of a call. */
#define STATUS(wanted, call)                                                         \
    do {                                                                             \
        int32_t check_found = (call);                                                \
        if (check_found != (wanted)) {                                               \
            fprintf(stderr, "%s:%d: %s: status %d, wanted %s: %s\n", __FILE__,       \
                    __LINE__, #call, (int)check_found, #wanted, sv_last_error());    \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

#define OK(call) STATUS(SV_OK, call)

#endif
