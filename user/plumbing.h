/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of the standard libraries of C++ and Rust: between an allocator and the code that people
 * wrote there is much that says how memory was asked for, and not who did.
 */
#ifndef PLUMBING_H
#define PLUMBING_H

#include <stdbool.h>

struct symbolize_frame;

/* True if the function is the library's, by its name: C++ "std::", Rust "alloc::", and so on. */
bool plumbing_is_function(const struct symbolize_frame *frame);

/* True if the file at `path` is such a library, whatever its functions are called. */
bool plumbing_is_file(const char *path);

#endif
