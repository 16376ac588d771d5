// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two libraries that take turns at one address: plugin_a is loaded, allocates and is unloaded, and
 * plugin_b is where it was. Each block's size says which of them asked for it, and when:
 *   1001  plugin_a, after the profiler had time to see it     (says LOADED before)
 *   1002  plugin_b, at once after it was loaded
 *   1003  plugin_b, after the profiler had time to see it     (says LOADED before)
 *   1004  plugin_a, 1005 plugin_b: at once, by turns
 * `plugins quick` gives the profiler no time at all.
 * build: -ldl
 * library: plugin_a -DPLUGIN=plugin_a
 * library: plugin_b -DPLUGIN=plugin_b
 */
#include <stdlib.h>

#ifdef PLUGIN

void *PLUGIN(size_t bytes)
{
	void *p = malloc(bytes);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

#else

#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>

#define BLOCKS 1000
#define TURNS  30

typedef void *plugin_fn(size_t bytes);

struct plugin {
	void *library;
	plugin_fn *fn;
};

static struct plugin load(const char *directory, const char *name)
{
	struct plugin plugin;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.so", directory, name);
	plugin.library = dlopen(path, RTLD_NOW);
	if (!plugin.library)
		_exit(5);
	plugin.fn = (plugin_fn *)dlsym(plugin.library, name);
	return plugin;
}

static void run(plugin_fn *fn, int cnt, size_t bytes)
{
	for (int i = 0; i < cnt; i++)
		TRUTH_KEEP(fn(bytes));
	say("SIZE %zu %d\n", bytes, cnt);
}

int main(int argc, char **argv)
{
	char *directory = strdup(argv[0]);
	int quick = argc > 1 && !strcmp(argv[1], "quick");
	struct plugin a, b;

	*strrchr(directory, '/') = '\0';
	await("READY");
	a = load(directory, "plugin_a");
	if (!quick)
		await("LOADED");
	run(a.fn, BLOCKS, 1001);
	dlclose(a.library);
	b = load(directory, "plugin_b");
	run(b.fn, BLOCKS, 1002);
	/* Where the other one was, or there is nothing to see. */
	say("PLACE %s\n", (void *)a.fn == (void *)b.fn ? "same" : "other");
	if (!quick)
		await("LOADED");
	run(b.fn, BLOCKS, 1003);
	dlclose(b.library);
	for (int i = 0; i < TURNS; i++) {
		a = load(directory, "plugin_a");
		run(a.fn, 1, 1004);
		dlclose(a.library);
		b = load(directory, "plugin_b");
		run(b.fn, 1, 1005);
		dlclose(b.library);
	}
	finish();
	return 0;
}

#endif
