// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a sandboxed child survives, and what not.
 */
#include "sandbox.h"

#include "check.h"

#include <unistd.h>

static pid_t armed;

static int arm(pid_t child, void *data)
{
	armed = child;
	return data ? -1 : 0;
}

static void do_nothing(void)
{
}

static void ask_for_a_parent(void)
{
	getppid();
}

static void crash(void)
{
	__builtin_trap();
}

TEST(the_harmless_survives)
{
	CHECK(sandbox_survives(arm, NULL, do_nothing));
	CHECK(armed > 0 && armed != getpid());
}

TEST(a_system_call_kills)
{
	CHECK(!sandbox_survives(arm, NULL, ask_for_a_parent));
	CHECK(!sandbox_survives(arm, NULL, crash));
}

TEST(what_cannot_be_armed_is_not_safe)
{
	CHECK(!sandbox_survives(arm, &armed, do_nothing));
}
