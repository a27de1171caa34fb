/* The error handling of the examples: the message of a call that failed ends `main`. */

#ifndef SELVEDGE_EXAMPLES_TRY_H
#define SELVEDGE_EXAMPLES_TRY_H

#include <stdio.h>

#include <selvedge.h>

#define TRY(call)                                                                    \
    do {                                                                             \
        if ((call) != SV_OK) {                                                       \
            fprintf(stderr, "%s\n", sv_last_error());                                \
            return 1;                                                                \
        }                                                                            \
    } while (0)

#endif
