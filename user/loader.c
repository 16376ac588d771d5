// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: sizes and the rate; then processes and places to probe. Out: counts and stacks in `heap`.
 * Owns the skeleton; knows neither files nor allocators nor how profiles look.
 */
#include "loader.h"

#include "attachments.h"
#include "cleanup.h"
#include "heap.h"
#include "heapbpf.skel.h"
#include "log.h"
#include "sampling.h"
#include "self_probe.h"
#include "tallies.h"
#include "unwind_table.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

struct loader {
	struct heapbpf_bpf *skel;
	struct uprobe_links *self_links; /* on our own functions */
	struct attachments *attachments; /* of targets */
	struct uprobe_link_progs progs;
	enum uprobe_link_tier tier;
	struct ring_buffer *ring;
	loader_event_fn *event_fn;
	void *event_data;
	struct tallies tallies;
	uint32_t window_cnt; /* opened until now */
	uint64_t self_hits;  /* by loader_hit_ns() */
	bool is_floor;	     /* the programs are empty and count nothing */
};

/* For one measurement: a tenth of a millisecond in all. */
#define HIT_CALLS 40

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
	attachments_free(loader->attachments);
	uprobe_links_free(loader->self_links);
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

	loader_set_rate(loader, opts->rate_bytes);
	config->stack_max = opts->max_depth;
	config->track_live = opts->track_live;
	config->exact = opts->rate_bytes == 1;
	config->follow = opts->follow;
	config->count_each = opts->count_each;
	config->self = getpid();
	skel->bss->hb_hot.knobs = config->track_live ? HB_HOT_TRACKS : 0;
	if (config->exact || config->count_each || config->follow & HB_FOLLOW_EVERYBODY)
		skel->bss->hb_hot.knobs |= HB_HOT_UNUSUAL;
	if (getrandom(&config->stack_seed, sizeof(config->stack_seed), 0) < 0)
		return log_fail(errno, "cannot get random bytes");
	bpf_program__set_autoload(skel->progs.hb_fork,
				  opts->follow & (HB_FOLLOW_CHILDREN | HB_FOLLOW_EVERYBODY));
	bpf_program__set_autoload(skel->progs.hb_ignore, opts->follow & HB_FOLLOW_EVERYBODY);
	bpf_program__set_autoload(skel->progs.hb_fault, opts->follow & HB_FOLLOW_HELD);
	bpf_program__set_autoload(skel->progs.hb_signal, opts->follow & HB_FOLLOW_HELD);
	bpf_map__set_max_entries(skel->maps.holds, opts->max_processes);
	bpf_map__set_max_entries(skel->maps.procs, opts->max_processes);
	/* And we ourselves. */
	bpf_map__set_max_entries(skel->maps.costs, opts->count_each ? opts->max_processes + 1 : 1);
	bpf_map__set_max_entries(skel->maps.uw_procs, opts->max_processes);
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
	loader->is_floor = opts->floor;
	/* Without returns a session is a multi link with more to do. */
	if (!opts->track_live && loader->tier == UPROBE_LINK_SESSION)
		loader->tier = UPROBE_LINK_MULTI;
	session = loader->tier == UPROBE_LINK_SESSION;
	loader->progs.entry = opts->floor ? skel->progs.hb_empty : skel->progs.hb_entry;
	if (session) {
		loader->progs.plain = loader->progs.entry;
		loader->progs.entry =
			opts->floor ? skel->progs.hb_empty_session : skel->progs.hb_session;
	}
	if (!session && opts->track_live)
		loader->progs.returns = opts->floor ? skel->progs.hb_empty : skel->progs.hb_return;
	for (size_t i = 0; i < ARRAY_CNT(all); i++) {
		enum uprobe_link_tier tier =
			all[i] == loader->progs.plain ? UPROBE_LINK_MULTI : loader->tier;

		bpf_program__set_autoload(all[i], all[i] == loader->progs.entry ||
							  all[i] == loader->progs.returns ||
							  all[i] == loader->progs.plain);
		if (uprobe_link_attach_type(tier))
			bpf_program__set_expected_attach_type(all[i],
							      uprobe_link_attach_type(tier));
	}
}

int loader_open(const struct loader_opts *opts, struct loader **out)
{
	struct loader *loader _cleanup_(cleanup_loader) = calloc(1, sizeof(*loader));
	char why[64];
	int err;

	libbpf_set_print(print_libbpf);
	if (!loader)
		return log_fail(ENOMEM, "cannot open the BPF object");
	loader->skel = heapbpf_bpf__open();
	loader->self_links = uprobe_links_new();
	if (!loader->skel || !loader->self_links) {
		/* libbpf has numbers of its own. The bytes are ours, and right. */
		libbpf_strerror(errno == LIBBPF_ERRNO__LIBELF ? ENOMEM : errno, why, sizeof(why));
		return log_fail(0, "cannot open the BPF object: %s", why);
	}
	err = configure(loader, opts);
	if (err)
		return err;
	choose_programs(loader, opts);
	loader->attachments = attachments_new(loader->tier, &loader->progs);
	if (!loader->attachments || attachments_on(loader->attachments))
		return log_fail(ENOMEM, "cannot open the BPF object");
	err = heapbpf_bpf__load(loader->skel);
	if (err == -E2BIG || err == -ENOMEM)
		return log_fail(-err, "the kernel has no room for the maps or the programs; lower "
				      "--max-live, --max-sites or --max-stacks (-v shows more)");
	/* Programs were permitted before, so it is the maps; since 5.11 they count otherwise. */
	if (err == -EPERM)
		return log_fail(EPERM, "the kernel refuses the maps; raise the limit on locked "
				       "memory (ulimit -l unlimited), or lower --max-live, "
				       "--max-sites or --max-stacks (-v shows more)");
	/* caps_probe() saw the file; this is how libbpf says that it could not hold it. */
	if (err == -ESRCH)
		return log_fail(0, "cannot load /sys/kernel/btf/vmlinux; are memory or descriptors "
				   "(ulimit -n) short?");
	if (err)
		return log_fail(-err, "the kernel did not load the BPF programs (-v shows why)");
	loader->tallies = (struct tallies){
		.counters = loader->skel->bss->hb_hot.counters,
		.live_hints = loader->skel->bss->hb_live_hints,
		.sites = bpf_map__fd(loader->skel->maps.sites),
		.live = bpf_map__fd(loader->skel->maps.live),
		.stacks = bpf_map__fd(loader->skel->maps.stacks),
		.stack_bytes = stack_bytes(opts->max_depth),
	};
	/* Process life-cycle: without it an exec would go on as if nothing had happened. */
	err = heapbpf_bpf__attach(loader->skel);
	if (err)
		return log_fail(-err, "cannot attach to what the kernel tells of processes "
				      "(it may be memory; -v shows more)");
	*out = take_ptr(loader);
	return 0;
}

void loader_window(struct loader *loader, bool open)
{
	uint32_t window = open ? ++loader->window_cnt : 0;

	__atomic_store_n(&loader->skel->bss->hb_hot.window, window, __ATOMIC_SEQ_CST);
}

void loader_set_rate(struct loader *loader, uint64_t rate_bytes)
{
	sampling_fill(rate_bytes, loader->skel->bss->hb_thresholds);
	loader->skel->bss->hb_hot.per_byte = sampling_per_byte(rate_bytes);
}

int loader_arm(struct loader *loader)
{
	return attachments_on(loader->attachments);
}

void loader_choose(struct loader *loader, loader_chooses_fn *fn, void *data)
{
	attachments_choose(loader->attachments, fn, data);
}

void loader_disarm(struct loader *loader)
{
	attachments_off(loader->attachments);
}

/* Probes the two functions and times them; the links stay in loader->self_links. */
static int measure(struct loader *loader, struct hit_cost *out)
{
	struct uprobe_link_progs entry = {.entry = loader->progs.entry};
	struct uprobe_link_progs returns = {.returns = loader->progs.returns};
	struct uprobe_link_point points[SELF_PROBE_TIMED_CNT] = {};
	double bare_ns[SELF_PROBE_TIMED_CNT];
	struct hit_cost cost = {};
	int err;

	for (int which = 0; which < SELF_PROBE_TIMED_CNT; which++) {
		err = self_probe_point(which, &points[which]);
		if (err)
			return err;
		points[which].returns = which == SELF_PROBE_EMULATED;
		bare_ns[which] = self_probe_time_ns(which);
	}
	/* These links stay until loader_detach(): to take one out costs more than to measure. */
	err = uprobe_links_add(loader->self_links, loader->tier, &entry, getpid(), "/proc/self/exe",
			       points, SELF_PROBE_TIMED_CNT);
	if (err)
		return err;
	cost.emulated_ns =
		fmax(self_probe_time_ns(SELF_PROBE_EMULATED) - bare_ns[SELF_PROBE_EMULATED], 0);
	cost.stepped_ns =
		fmax(self_probe_time_ns(SELF_PROBE_STEPPED) - bare_ns[SELF_PROBE_STEPPED], 0);
	if (returns.returns) {
		err = uprobe_links_add(loader->self_links, loader->tier, &returns, getpid(),
				       "/proc/self/exe", points, SELF_PROBE_TIMED_CNT);
		if (err)
			return err;
		cost.return_ns = fmax(self_probe_time_ns(SELF_PROBE_EMULATED) -
					      bare_ns[SELF_PROBE_EMULATED] - cost.emulated_ns,
				      0);
	}
	*out = cost;
	return 0;
}

int loader_calibrate(struct loader *loader, struct hit_cost *out)
{
	int err;

	*out = (struct hit_cost){};
	loader_window(loader, true);
	err = measure(loader, out);
	loader_window(loader, false);
	tallies_zero_counters(&loader->tallies);
	return err;
}

double loader_hit_ns(struct loader *loader)
{
	if (!loader->is_floor)
		loader->self_hits += HIT_CALLS * SELF_PROBE_BATCHES;
	return self_probe_typical_ns(SELF_PROBE_EMULATED, HIT_CALLS);
}

int loader_follow(struct loader *loader, pid_t tgid, uint32_t *epoch)
{
	int fd = bpf_map__fd(loader->skel->maps.procs);
	struct hb_proc proc = {.told = 1};
	struct mappings_state state;
	int err = loader_state(loader, tgid, &state);

	if (err == -ESRCH) {
		proc.epoch = __atomic_add_fetch(&loader->skel->bss->hb_images, 1, __ATOMIC_SEQ_CST);
		if (bpf_map_update_elem(fd, &tgid, &proc, BPF_NOEXIST) && errno != EEXIST)
			return -errno;
		err = loader_state(loader, tgid, &state);
	}
	if (!err)
		*epoch = state.epoch;
	return err;
}

void loader_ignore(struct loader *loader, pid_t tgid, uint32_t epoch)
{
	struct hb_ignoring what = {.tgid = (__u32)tgid, .epoch = epoch};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &what, .ctx_size_in = sizeof(what));
	int err = bpf_prog_test_run_opts(bpf_program__fd(loader->skel->progs.hb_ignore), &opts);

	if (err)
		log_debug("process %d is not ignored: %s", (int)tgid, strerror(-err));
}

int loader_hold(struct loader *loader, pid_t tgid, enum hb_hold hold,
		const struct hb_linker *linker)
{
	struct hb_holding holding = {.hold = hold, .due = 1};

	if (linker)
		holding.linker = *linker;
	return bpf_map_update_elem(loader_holds_fd(loader), &tgid, &holding, BPF_ANY) ? -errno : 0;
}

bool loader_holds_any(const struct loader *loader)
{
	int fd = loader_holds_fd(loader);
	struct hb_holding holding;
	pid_t tgid, *last = NULL;

	for (; !bpf_map_get_next_key(fd, last, &tgid); last = &tgid)
		if (!bpf_map_lookup_elem(fd, &tgid, &holding) && holding.hold == HB_HOLD_HELD)
			return true;
	return false;
}

void loader_end_holds(struct loader *loader)
{
	__atomic_store_n(&loader->skel->bss->hb_holds_off, 1, __ATOMIC_SEQ_CST);
}

int loader_holds_fd(const struct loader *loader)
{
	return bpf_map__fd(loader->skel->maps.holds);
}

int loader_holds_switch(const struct loader *loader, uint64_t *off)
{
	*off = offsetof(typeof(*loader->skel->bss), hb_holds_off);
	return bpf_map__fd(loader->skel->maps.bss);
}

int loader_state(const struct loader *loader, pid_t tgid, struct mappings_state *out)
{
	struct hb_proc proc;

	if (bpf_map_lookup_elem(bpf_map__fd(loader->skel->maps.procs), &tgid, &proc))
		return errno == ENOENT ? -ESRCH : -errno;
	*out = (struct mappings_state){proc.epoch, proc.libraries};
	return 0;
}

void loader_forget_images(struct loader *loader, pid_t tgid, uint32_t epoch)
{
	tallies_forget_live(&loader->tallies, (uint32_t)tgid, epoch);
}

int loader_attach(struct loader *loader, pid_t tgid, const char *path, uint32_t slot,
		  const struct hb_wrappers *wrappers, const struct uprobe_link_point *points,
		  size_t cnt)
{
	if (slot >= HB_SLOT_SELF)
		return -E2BIG;
	if (bpf_map_update_elem(bpf_map__fd(loader->skel->maps.wrappers), &slot, wrappers, BPF_ANY))
		return -errno;
	return attachments_add(loader->attachments, tgid, path, points, cnt);
}

void loader_detach_process(struct loader *loader, pid_t tgid)
{
	attachments_drop(loader->attachments, tgid);
	attachments_sweep(loader->attachments);
}

void loader_sweep(struct loader *loader)
{
	attachments_sweep(loader->attachments);
}

void loader_detach(struct loader *loader)
{
	attachments_end(loader->attachments, loader->self_links);
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

void loader_counters(const struct loader *loader, uint64_t counters[static HB_COUNTER_CNT])
{
	tallies_counters(&loader->tallies, counters);
	counters[HB_LOSS_CNT + HB_STAT_HITS] -= loader->self_hits;
	if (loader->skel->rodata->hb_config.track_live)
		counters[HB_LOSS_CNT + HB_STAT_UNKNOWN_FREES] -= loader->self_hits;
	if (loader->progs.returns)
		counters[HB_LOSS_CNT + HB_STAT_RETURNS] -= loader->self_hits;
}

bool loader_costs_of(const struct loader *loader, pid_t tgid, uint64_t costs[static HB_COST_CNT])
{
	return !bpf_map_lookup_elem(bpf_map__fd(loader->skel->maps.costs), &tgid, costs);
}

/* What the walks over maps carry along. */
struct reading {
	loader_heap_fn *heap_of;
	void *data;
	const __u64 *threshold;
};

double loader_live_bytes(const struct loader *loader)
{
	return tallies_live_bytes(&loader->tallies, loader->skel->bss->hb_thresholds);
}

static int add_site(const void *key_, const void *site, void *data)
{
	struct reading *reading = data;
	const struct hb_site_key *key = key_;
	struct heap *heap = reading->heap_of((pid_t)key->tgid, key->epoch, reading->data);

	return heap ? heap_add_site(heap, key, site, reading->threshold) : 0;
}

int loader_settle(struct loader *loader, loader_heap_fn *heap_of, void *data)
{
	struct reading reading = {
		.heap_of = heap_of,
		.data = data,
		.threshold = loader->skel->bss->hb_thresholds,
	};
	int err = tallies_take_sites(&loader->tallies, add_site, &reading);

	if (!err)
		err = tallies_clear_live(&loader->tallies);
	return err ? log_fail(-err, "cannot collect what was counted") : 0;
}

static int add_stack(const void *id, const void *stack_, void *data)
{
	const struct reading *reading = data;
	const struct hb_stack *stack = stack_;
	struct heap *heap = reading->heap_of((pid_t)stack->tgid, stack->epoch, reading->data);

	return heap ? heap_add_stack(heap, *(const uint64_t *)id, stack) : 0;
}

int loader_read_stacks(const struct loader *loader, loader_heap_fn *heap_of, void *data)
{
	struct reading reading = {.heap_of = heap_of, .data = data};
	int err = tallies_each_stack(&loader->tallies, add_stack, &reading);

	return err ? log_fail(-err, "cannot collect stacks") : 0;
}
