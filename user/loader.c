// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: sizes and the rate; then processes and places to probe. Out: counts and stacks in `heap`.
 * Owns the skeleton; knows neither files nor allocators nor how profiles look.
 */
#include "loader.h"

#include "cleanup.h"
#include "heap.h"
#include "heapbpf.skel.h"
#include "log.h"
#include "sampling.h"
#include "self_probe.h"
#include "unwind_table.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <sys/random.h>

struct loader {
	struct heapbpf_bpf *skel;
	struct uprobe_links *links;
	struct uprobe_link_progs progs;
	enum uprobe_link_tier tier;
	struct ring_buffer *ring;
	loader_event_fn *event_fn;
	void *event_data;
	__u64 threshold[HB_CLASS_CNT]; /* as in the configuration */
};

DEFINE_CLEANUP(loader, struct loader, loader_free)

/* libbpf explains itself to those who ask for it; our own line says what matters. */
static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_DEBUG || !log_shows(LOG_LEVEL_DEBUG))
		return 0;
	return vfprintf(stderr, fmt, args);
}

void loader_free(struct loader *loader)
{
	if (!loader)
		return;
	uprobe_links_free(loader->links);
	ring_buffer__free(loader->ring);
	heapbpf_bpf__destroy(loader->skel);
	free(loader);
}

/* Of a value of map `stacks`: it ends with the last frame that fits. */
static size_t stack_bytes(uint32_t max_depth)
{
	return offsetof(struct hb_stack, frame) + max_depth * sizeof(__u64);
}

static int configure(struct loader *loader, const struct loader_opts *opts)
{
	struct heapbpf_bpf *skel = loader->skel;
	struct hb_config *config = (struct hb_config *)&skel->rodata->hb_config;

	sampling_fill(opts->rate_bytes, loader->threshold);
	memcpy(config->threshold, loader->threshold, sizeof(config->threshold));
	config->stack_max = opts->max_depth;
	config->track_live = opts->track_live;
	config->exact = opts->rate_bytes == 1;
	if (getrandom(&config->stack_seed, sizeof(config->stack_seed), 0) < 0)
		return log_fail(errno, "cannot get random bytes");
	bpf_map__set_max_entries(skel->maps.stacks, opts->max_stacks);
	bpf_map__set_value_size(skel->maps.stacks, stack_bytes(opts->max_depth));
	bpf_map__set_max_entries(skel->maps.sites, opts->max_sites);
	bpf_map__set_max_entries(skel->maps.live, opts->track_live ? opts->max_live : 1);
	return 0;
}

/* Picks the programs of the tier and keeps the others from being loaded. */
static void choose_programs(struct loader *loader, const struct loader_opts *opts)
{
	struct heapbpf_bpf *skel = loader->skel;
	struct bpf_program *const all[] = {
		skel->progs.hb_entry, skel->progs.hb_return,	    skel->progs.hb_session,
		skel->progs.hb_empty, skel->progs.hb_empty_session,
	};
	bool session;

	loader->tier = opts->tier;
	/* Without returns a session is a multi link with more to do. */
	if (!opts->track_live && loader->tier == UPROBE_LINK_SESSION)
		loader->tier = UPROBE_LINK_MULTI;
	session = loader->tier == UPROBE_LINK_SESSION;
	if (session)
		loader->progs.entry =
			opts->floor ? skel->progs.hb_empty_session : skel->progs.hb_session;
	else
		loader->progs.entry = opts->floor ? skel->progs.hb_empty : skel->progs.hb_entry;
	if (!session && opts->track_live)
		loader->progs.returns = opts->floor ? skel->progs.hb_empty : skel->progs.hb_return;

	for (size_t i = 0; i < ARRAY_CNT(all); i++) {
		bpf_program__set_autoload(all[i], all[i] == loader->progs.entry ||
							  all[i] == loader->progs.returns);
		if (uprobe_link_attach_type(loader->tier))
			bpf_program__set_expected_attach_type(
				all[i], uprobe_link_attach_type(loader->tier));
	}
}

int loader_open(const struct loader_opts *opts, struct loader **out)
{
	struct loader *loader _cleanup_(cleanup_loader) = calloc(1, sizeof(*loader));
	int err;

	libbpf_set_print(print_libbpf);
	if (!loader)
		return -ENOMEM;
	loader->skel = heapbpf_bpf__open();
	loader->links = uprobe_links_new();
	if (!loader->skel || !loader->links)
		return log_fail(errno, "cannot open the BPF object");
	err = configure(loader, opts);
	if (err)
		return err;
	choose_programs(loader, opts);
	err = heapbpf_bpf__load(loader->skel);
	if (err == -E2BIG || err == -ENOMEM)
		return log_fail(-err, "the kernel has no room for the maps or the programs; lower "
				      "--max-live, --max-sites or --max-stacks (-v shows more)");
	if (err)
		return log_fail(-err, "the kernel did not load the BPF programs (-v shows why)");
	/* Process life-cycle: without it an exec would go on as if nothing had happened. */
	err = heapbpf_bpf__attach(loader->skel);
	if (err)
		return log_fail(-err, "cannot attach to sched_process_exec and sched_process_exit");
	*out = take_ptr(loader);
	return 0;
}

static int zero_counters(const struct loader *loader)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *zero = NULL;

	if (cpus < 1)
		return -EINVAL;
	zero = calloc(cpus, sizeof(*zero));
	if (!zero)
		return -ENOMEM;
	for (uint32_t i = 0; i < HB_COUNTER_CNT; i++)
		if (bpf_map_update_elem(bpf_map__fd(loader->skel->maps.counters), &i, zero, 0))
			return -errno;
	return 0;
}

void loader_record(struct loader *loader, bool on)
{
	__atomic_store_n(&loader->skel->bss->hb_recording, on, __ATOMIC_SEQ_CST);
}

/* Probes the two functions and times them; the links stay in loader->links. */
static int measure(struct loader *loader, struct loader_cost *out)
{
	struct uprobe_link_progs entry = {.entry = loader->progs.entry};
	struct uprobe_link_progs returns = {.returns = loader->progs.returns};
	struct uprobe_link_point points[SELF_PROBE_CNT] = {};
	double bare_ns[SELF_PROBE_CNT];
	struct loader_cost cost = {};
	int err;

	for (int which = 0; which < SELF_PROBE_CNT; which++) {
		err = self_probe_point(which, &points[which]);
		if (err)
			return err;
		points[which].returns = which == SELF_PROBE_EMULATED;
		bare_ns[which] = self_probe_time_ns(which);
	}
	/* These links stay until loader_detach(): to take one out costs more than to measure. */
	err = uprobe_links_add(loader->links, loader->tier, &entry, getpid(), "/proc/self/exe",
			       points, SELF_PROBE_CNT);
	if (err)
		return err;
	cost.emulated_ns =
		fmax(self_probe_time_ns(SELF_PROBE_EMULATED) - bare_ns[SELF_PROBE_EMULATED], 0);
	cost.stepped_ns =
		fmax(self_probe_time_ns(SELF_PROBE_STEPPED) - bare_ns[SELF_PROBE_STEPPED], 0);
	if (returns.returns) {
		err = uprobe_links_add(loader->links, loader->tier, &returns, getpid(),
				       "/proc/self/exe", points, SELF_PROBE_CNT);
		if (err)
			return err;
		cost.return_ns = fmax(self_probe_time_ns(SELF_PROBE_EMULATED) -
					      bare_ns[SELF_PROBE_EMULATED] - cost.emulated_ns,
				      0);
	}
	*out = cost;
	return 0;
}

int loader_calibrate(struct loader *loader, struct loader_cost *out)
{
	int err, zero_err;

	*out = (struct loader_cost){};
	loader_record(loader, true);
	err = measure(loader, out);
	loader_record(loader, false);
	zero_err = zero_counters(loader);
	return err ? err : zero_err;
}

int loader_follow(struct loader *loader, pid_t tgid)
{
	struct hb_proc proc = {};
	uint32_t key = tgid;

	if (bpf_map_update_elem(bpf_map__fd(loader->skel->maps.procs), &key, &proc, BPF_ANY))
		return log_fail(errno, "cannot follow process %d", (int)tgid);
	return 0;
}

struct mappings_state loader_state(const struct loader *loader, pid_t tgid)
{
	struct hb_proc proc = {};

	bpf_map_lookup_elem(bpf_map__fd(loader->skel->maps.procs), &tgid, &proc);
	return (struct mappings_state){proc.epoch, proc.libraries};
}

void loader_forget_images(struct loader *loader, pid_t tgid, uint32_t epoch)
{
	int fd = bpf_map__fd(loader->skel->maps.live);
	struct hb_live_key key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &key);

	while (more) {
		struct hb_live object;

		/* The key after this one must be known before this one goes. */
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.tgid == (uint32_t)tgid && !bpf_map_lookup_elem(fd, &key, &object) &&
		    object.epoch < epoch)
			bpf_map_delete_elem(fd, &key);
		key = next;
	}
}

int loader_attach(struct loader *loader, pid_t tgid, const char *path, uint32_t slot,
		  const struct hb_wrappers *wrappers, const struct uprobe_link_point *points,
		  size_t cnt)
{
	if (slot >= HB_SLOT_MAX - 1)
		return -E2BIG;
	if (bpf_map_update_elem(bpf_map__fd(loader->skel->maps.wrappers), &slot, wrappers, BPF_ANY))
		return -errno;
	return uprobe_links_add(loader->links, loader->tier, &loader->progs, tgid, path, points,
				cnt);
}

void loader_detach_process(struct loader *loader, pid_t tgid)
{
	uprobe_links_drop(loader->links, tgid);
}

void loader_detach(struct loader *loader)
{
	uprobe_links_clear(loader->links);
}

void loader_unwind_maps(const struct loader *loader, struct unwind_table_maps *out)
{
	*out = (struct unwind_table_maps){
		.rows = bpf_map__fd(loader->skel->maps.uw_rows),
		.index = bpf_map__fd(loader->skel->maps.uw_index),
		.tables = bpf_map__fd(loader->skel->maps.uw_tables),
		.bigs = bpf_map__fd(loader->skel->maps.uw_big),
		.maps = bpf_map__fd(loader->skel->maps.uw_maps),
		.procs = bpf_map__fd(loader->skel->maps.uw_procs),
	};
}

/* A record shorter than the contract's can only be ours; never trust its length for reading. */
static int deliver(void *ctx, void *data, size_t size)
{
	struct loader *loader = ctx;

	if (size >= sizeof(struct hb_event))
		loader->event_fn(data, loader->event_data);
	return 0;
}

int loader_on_event(struct loader *loader, loader_event_fn *fn, void *data)
{
	loader->event_fn = fn;
	loader->event_data = data;
	loader->ring =
		ring_buffer__new(bpf_map__fd(loader->skel->maps.events), deliver, loader, NULL);
	return loader->ring ? 0 : log_fail(errno, "cannot map the event ring");
}

int loader_event_fd(const struct loader *loader)
{
	return loader->ring ? ring_buffer__epoll_fd(loader->ring) : -1;
}

void loader_poll_events(struct loader *loader)
{
	ring_buffer__consume(loader->ring);
}

const __u64 *loader_threshold(const struct loader *loader)
{
	return loader->threshold;
}

int loader_counters(const struct loader *loader, uint64_t counters[static HB_COUNTER_CNT])
{
	int fd = bpf_map__fd(loader->skel->maps.counters);
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *values = cpus < 1 ? NULL : calloc(cpus, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < HB_COUNTER_CNT; i++) {
		if (bpf_map_lookup_elem(fd, &i, values))
			return log_fail(errno, "cannot read the counters");
		counters[i] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			counters[i] += values[cpu];
	}
	return 0;
}

double loader_live_bytes(const struct loader *loader)
{
	int fd = bpf_map__fd(loader->skel->maps.sites);
	struct hb_site_key key, *at = NULL;
	struct hb_site site;
	double bytes = 0;

	while (!bpf_map_get_next_key(fd, at, &key)) {
		uint64_t ended;

		at = &key;
		if (!key.size || bpf_map_lookup_elem(fd, &key, &site))
			continue;
		ended = site.frees + site.untracked;
		if (site.allocs > ended)
			bytes += (site.allocs - ended) * (double)key.size /
				 sampling_p(loader_threshold(loader), key.size);
	}
	return bytes;
}

static int read_sites(const struct loader *loader, uint32_t tgid, struct heap *heap)
{
	int fd = bpf_map__fd(loader->skel->maps.sites);
	struct hb_site_key key, *at = NULL;
	struct hb_site site;

	while (!bpf_map_get_next_key(fd, at, &key)) {
		at = &key;
		if (key.tgid != tgid || bpf_map_lookup_elem(fd, &key, &site))
			continue;
		if (heap_add_site(heap, &key, &site))
			return log_fail(ENOMEM, "cannot collect sites");
	}
	return 0;
}

static int read_stacks(const struct loader *loader, uint32_t tgid, struct heap *heap)
{
	int fd = bpf_map__fd(loader->skel->maps.stacks);
	_cleanup_free_ struct hb_stack *stack = malloc(sizeof(*stack));
	uint64_t id, *at = NULL;

	if (!stack)
		return -ENOMEM;
	while (!bpf_map_get_next_key(fd, at, &id)) {
		at = &id;
		if (bpf_map_lookup_elem(fd, &id, stack) || stack->tgid != tgid)
			continue;
		if (heap_add_stack(heap, id, stack))
			return log_fail(ENOMEM, "cannot collect stacks");
	}
	return 0;
}

int loader_read(const struct loader *loader, pid_t tgid, struct heap *heap)
{
	int err = read_sites(loader, tgid, heap);

	return err ? err : read_stacks(loader, tgid, heap);
}
