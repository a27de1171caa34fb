/* fake_cublaslt.c: the library that has to lie beside cuBLAS; see fake_cublas.c. */
#include <stddef.h>

size_t cublasLtGetVersion(void) { return 120901; }
