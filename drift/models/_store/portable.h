/* What differs between compilers and systems, and names by precision.

   C11 without `restrict` and hexadecimal floats, which some compilers on Windows lack; all have
   `__restrict`. */

#ifndef DRIFT_PORTABLE_H
#define DRIFT_PORTABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef DRIFT_CLONES /* -DDRIFT_CLONES= builds for the baseline alone */
#elif defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#if __GNUC__ >= 12 /* earlier versions cannot dispatch on these levels */
#define DRIFT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DRIFT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define DRIFT_CLONES
#endif
/* For short loops, which GCC would unroll instead of vectorising. */
#if defined(__GNUC__) && !defined(__clang__)
#define DRIFT_ROLLED _Pragma("GCC unroll 1")
#else
#define DRIFT_ROLLED
#endif
#if defined(__GNUC__)
#define DRIFT_INLINE inline __attribute__((always_inline))
#define DRIFT_PREFETCH(p) __builtin_prefetch(p)
#else
#define DRIFT_INLINE inline
#define DRIFT_PREFETCH(p) ((void)(p))
#endif

/* Vectorised arrays are aligned to cache lines. */
#ifdef _WIN32
#include <malloc.h>
#define drift_free(p) _aligned_free(p)
#else
#define drift_free(p) free(p)
#endif

/* Grow a block from `before` to `after` bytes, zeroed. Out of memory: NULL, the old block unchanged. */
static inline void *drift_grow(void *old, size_t before, size_t after) {
#ifdef _WIN32
    void *block = _aligned_malloc(after, 64);
    if (!block) return NULL;
#else
    void *block;
    if (posix_memalign(&block, 64, after)) return NULL;
#endif
    if (before) memcpy(block, old, before);
    memset((char *)block + before, 0, after - before);
    drift_free(old);
    return block;
}

/* A name by precision: f_float or f_double. A file with such names is included once with each REAL. */
#define DRIFT_JOIN2(a, b) a##_##b
#define DRIFT_JOIN(a, b) DRIFT_JOIN2(a, b)
#define DRIFT_NAME(name) DRIFT_JOIN(name, REAL)

#define DRIFT_LANES 16 /* slots come in multiples of this, so that no loop over them has a tail */

#endif
