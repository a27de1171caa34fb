/* Prints the libraries of CUDA that selvedge looked for, and each path that it tried. */

#include <stdio.h>
#include <stdlib.h>

#include <selvedge.h>

int main(void)
{
    size_t length = 0;
    char *text;

    /* A capacity of 0 asks for the length alone. */
    if (sv_library_report(NULL, 0, &length) != SV_OK || (text = malloc(length + 1)) == NULL) {
        fprintf(stderr, "%s\n", sv_last_error());
        return 1;
    }
    if (sv_library_report(text, length + 1, NULL) != SV_OK) {
        fprintf(stderr, "%s\n", sv_last_error());
        free(text);
        return 1;
    }
    fputs(text, stdout);
    free(text);
    return 0;
}
