// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the static libraries of elfutils 0.192 (Debian 13) lack: they call these functions, which
 * are in an internal library that is not installed (sourceware.org bug 32293). `make static` links
 * this file behind them, so that only what is still undefined comes from here: nothing with an
 * elfutils that is complete, and nothing in the program that is linked dynamically.
 *
 * In: what tsearch(3) takes, but a struct with the root of the tree and, if elfutils was configured
 * for it, a lock, which is not taken: heapbpf calls elfutils from one thread.
 */
#include <search.h>

/* The beginning of elfutils' search_tree. */
struct eu_tree {
	void *root;
};

typedef int eu_compare(const void *, const void *);

void *eu_tsearch(const void *key, struct eu_tree *tree, eu_compare *compare);
void *eu_tfind(const void *key, struct eu_tree *tree, eu_compare *compare);
void *eu_tdelete(const void *key, struct eu_tree *tree, eu_compare *compare);
void eu_tdestroy(struct eu_tree *tree, void (*free_node)(void *));
void eu_search_tree_init(struct eu_tree *tree);
void eu_search_tree_fini(struct eu_tree *tree, void (*free_node)(void *));

void *eu_tsearch(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	return tsearch(key, &tree->root, compare);
}

void *eu_tfind(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	return tfind(key, &tree->root, compare);
}

void *eu_tdelete(const void *key, struct eu_tree *tree, eu_compare *compare)
{
	return tdelete(key, &tree->root, compare);
}

void eu_tdestroy(struct eu_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void eu_search_tree_init(struct eu_tree *tree)
{
	tree->root = NULL;
}

void eu_search_tree_fini(struct eu_tree *tree, void (*free_node)(void *))
{
	eu_tdestroy(tree, free_node);
}
