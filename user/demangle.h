/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readable names of C++ and Rust symbols.
 */
#ifndef HEAPBPF_DEMANGLE_H /* libiberty has a DEMANGLE_H */
#define HEAPBPF_DEMANGLE_H

/*
 * The readable form of `name` (Itanium C++, Rust legacy without its hash, Rust v0), malloc()ed and
 * the caller's; a copy of `name` when it is not mangled or cannot be demangled. NULL: no memory.
 */
char *demangle(const char *name);

#endif
