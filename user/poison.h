/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Forced into every user-space file: calls that cannot be used safely do not compile.
 */
#ifndef POISON_H
#define POISON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison sprintf vsprintf strcpy strcat atoi atol gets

#endif
