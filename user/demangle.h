/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readable names of C++ and Rust symbols.
 */
#ifndef HEAPBPF_DEMANGLE_H /* libiberty has a DEMANGLE_H */
#define HEAPBPF_DEMANGLE_H

#include <stdbool.h>

/*
 * The readable form of `name` (Itanium C++ without the type that a template returns, Rust legacy
 * without its hash, Rust v0), malloc()ed and the caller's; a copy of `name` when it is not mangled
 * or cannot be demangled. NULL: no memory.
 */
char *demangle(const char *name);

/* True if `name` is one of Rust, in either scheme. */
bool demangle_is_rust(const char *name);

#endif
