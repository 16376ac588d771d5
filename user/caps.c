// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: nothing but the running kernel. Out: which ways to attach work, or one line that says what
 * is missing. Loads the small programs of caps.bpf.c and attaches them to a function of ours.
 */
#include "caps.h"

#include "caps.skel.h"
#include "cleanup.h"
#include "log.h"
#include "privilege.h"
#include "sandbox.h"
#include "self_probe.h"
#include "shortage.h"
#include "uprobe_request.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* One program loaded and attached to our own process. */
struct trial {
	struct caps_bpf *skel;
	const struct bpf_program *prog;
	struct uprobe_links *links;
};

static void *trial_free(void *data)
{
	struct trial *trial = data;

	if (!trial)
		return NULL;
	uprobe_links_free(trial->links);
	caps_bpf__destroy(trial->skel);
	free(trial);
	return NULL;
}

/*
 * Frees a trial beside us: the kernel waits for grace periods whenever a probe is taken out, and
 * nobody needs to wait for that.
 */
static void trial_release(struct trial *trial)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, trial_free, trial))
		pthread_detach(thread);
	else
		trial_free(trial);
}

static void cleanup_trial(struct trial **trial)
{
	if (*trial)
		trial_release(*trial);
}

/* Loads `name` of caps.bpf.c, alone, for `tier`. 0 and *out, or -errno. */
static int trial_load(enum uprobe_link_tier tier, const char *name, struct trial **out)
{
	struct trial *trial _cleanup_(cleanup_trial) = calloc(1, sizeof(*trial));
	struct bpf_program *prog;
	int err;

	if (!trial)
		return -ENOMEM;
	trial->skel = caps_bpf__open();
	trial->links = uprobe_links_new();
	if (!trial->skel || !trial->links)
		return -ENOMEM;
	bpf_object__for_each_program(prog, trial->skel->obj)
	{
		bool wanted = !strcmp(bpf_program__name(prog), name);

		bpf_program__set_autoload(prog, wanted);
		if (!wanted)
			continue;
		if (uprobe_link_attach_type(tier))
			bpf_program__set_expected_attach_type(prog, uprobe_link_attach_type(tier));
		trial->prog = prog;
	}
	err = caps_bpf__load(trial->skel);
	if (err)
		return err;
	*out = take_ptr(trial);
	return 0;
}

/* How a kernel answers whose pid filter lets one thread pass only. */
#define ONE_THREAD (-EBADF)

/*
 * The first kernels with multi links let the pid filter pass one thread only. They also look the
 * path up before they reject a negative pid (46ba0e49b642): "/", which is no file, and -1 give
 * EINVAL where it is mended. 0, or ONE_THREAD or another -errno.
 */
static int try_pid_filter(enum uprobe_link_tier tier, const struct bpf_program *prog)
{
	uint64_t off = 0;
	struct uprobe_request request =
		uprobe_request_multi(bpf_program__fd(prog), uprobe_link_attach_type(tier), "/",
				     &off, NULL, 1, false, -1);
	int err = uprobe_request_make(&request);

	if (!err)
		close(request.fd);
	return err == -EINVAL ? 0 : err ? err : ONE_THREAD;
}

/* How a trial of a tier ended. */
struct outcome {
	int err;     /* 0: it works; else -errno */
	bool loaded; /* the program was loaded, so what failed is to attach it */
};

/* Does the tier's program of caps.bpf.c load and attach to our own process? */
static struct outcome try_tier(enum uprobe_link_tier tier)
{
	static const char *const names[UPROBE_LINK_TIER_CNT] = {"caps_session", "caps_multi",
								"caps_base"};
	struct trial *trial _cleanup_(cleanup_trial) = NULL;
	struct uprobe_link_progs progs = {};
	struct uprobe_link_point point = {};
	struct outcome outcome = {};

	outcome.err = trial_load(tier, names[tier], &trial);
	if (outcome.err)
		return outcome;
	outcome.loaded = true;
	progs.entry = trial->prog;
	outcome.err = self_probe_point(SELF_PROBE_TRIAL, &point);
	if (!outcome.err && tier != UPROBE_LINK_PERF)
		outcome.err = try_pid_filter(tier, trial->prog);
	if (!outcome.err)
		outcome.err = uprobe_links_add(trial->links, tier, &progs, getpid(),
					       "/proc/self/exe", &point, 1);
	return outcome;
}

/* True if the kernel is locked down against reading (lockdown=confidentiality). */
static bool locked_down(void)
{
	FILE *file _cleanup_file_ = fopen("/sys/kernel/security/lockdown", "re");
	char text[128] = "";

	return file && fgets(text, sizeof(text), file) && strstr(text, "[confidentiality]");
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -EACCES;
}

/*
 * The capability whose lack explains a refusal, or NULL. What may load is refused only perf events:
 * the other links ask for no more than programs do.
 */
static const char *missing_for(struct outcome outcome)
{
	return privilege_missing(outcome.loaded ? PRIVILEGE_PERF_UPROBE : PRIVILEGE_BPF);
}

/* Says who is refused what; `instead` is what else to do, or "". */
static int explain_refusal(struct outcome outcome, const char *instead)
{
	const char *what = outcome.loaded ? "perf uprobes" : "BPF";
	const char *missing = missing_for(outcome);

	if (missing && geteuid())
		return log_fail(EPERM,
				"cannot use %s as uid %d without %s; add it, or run with sudo%s",
				what, (int)geteuid(), missing, instead);
	if (missing)
		return log_fail(EPERM,
				"cannot use %s: root without %s (a container, or dropped "
				"capabilities); add it, or run as root of the host%s",
				what, missing, instead);
	return log_fail(EPERM,
			"cannot use %s: the kernel refuses (a user namespace, seccomp or a "
			"security module); run as root of the host%s",
			what, instead);
}

/* Says why the first program could not be used. */
static int explain(struct outcome outcome, const char *instead)
{
	struct utsname name = {};
	int err = outcome.err;

	uname(&name);
	if (locked_down())
		return log_fail(EPERM,
				"cannot use BPF: kernel lockdown is in confidentiality mode; "
				"boot without lockdown=confidentiality");
	if (is_refusal(err))
		return explain_refusal(outcome, instead);
	if (err == -ENOSYS)
		return log_fail(0,
				"cannot use BPF: kernel %s is built without it; boot one with "
				"CONFIG_BPF_SYSCALL",
				name.release);
	if (err == -EMFILE || err == -ENFILE)
		return log_fail(-err, "cannot use BPF: raise the limit (ulimit -n)");
	if (err == -ENOMEM)
		return log_fail(ENOMEM, "cannot use BPF: out of memory or RLIMIT_MEMLOCK "
					"(ulimit -l) too small for this kernel");
	/* The file is there; this is how libbpf says that it could not hold it. */
	if (err == -ESRCH)
		return log_fail(0, "cannot load /sys/kernel/btf/vmlinux; are memory or descriptors "
				   "(ulimit -n) short?");
	/*
	 * EINVAL is how a verifier calls what it does not know. libbpf takes a trial that it had no
	 * memory for as one that failed.
	 */
	return log_fail(err == -EINVAL ? EOPNOTSUPP : -err,
			"cannot use sleepable uprobes with bpf_loop on kernel %s; "
			"heapbpf needs 6.1 or newer with CONFIG_UPROBES and CONFIG_BPF_SYSCALL, "
			"and free memory",
			name.release);
}

static int check_btf(void)
{
	struct stat btf = {};

	/* An empty file is what hides BTF in a container; a real one has megabytes. */
	if (stat("/sys/kernel/btf/vmlinux", &btf) || !btf.st_size)
		return log_fail(errno,
				"cannot read /sys/kernel/btf/vmlinux; heapbpf needs a kernel "
				"with CONFIG_DEBUG_INFO_BTF=y and /sys mounted");
	return 0;
}

/* See struct caps. */
static const char *lacks(struct outcome outcome)
{
	const char *missing;

	if (outcome.err == ONE_THREAD)
		return "the other threads of a process";
	if (!is_refusal(outcome.err))
		return NULL;
	missing = missing_for(outcome);
	return missing ? missing : "permission";
}

/*
 * Tries the tiers from the best on, all of them or until one works. *out, and how the trial of the
 * last one ended, which asks for the least, or of the best that works.
 */
static struct outcome try_tiers(bool all, struct caps *out)
{
	struct caps caps = {.best = UPROBE_LINK_TIER_CNT};
	struct outcome outcome = {};

	for (int tier = 0; tier < UPROBE_LINK_TIER_CNT; tier++) {
		if (!all && caps.best != UPROBE_LINK_TIER_CNT)
			break;
		outcome = try_tier(tier);
		caps.tier[tier] = !outcome.err;
		caps.lacks[tier] = lacks(outcome);
		if (!outcome.err && caps.best == UPROBE_LINK_TIER_CNT)
			caps.best = tier;
	}
	*out = caps;
	return caps.best == UPROBE_LINK_TIER_CNT ? outcome : (struct outcome){};
}

int caps_probe(struct caps *out)
{
	libbpf_print_fn_t before;
	struct outcome outcome;
	int err = check_btf();

	if (err)
		return err;
	/* A refusal here is an answer, not a message. */
	before = libbpf_set_print(NULL);
	outcome = try_tiers(true, out);
	libbpf_set_print(before);
	return outcome.err ? explain(outcome, "") : 0;
}

/* Why not the tier that was asked for, where others work. */
static int explain_wanted(enum uprobe_link_tier wanted, struct outcome outcome)
{
	if (is_refusal(outcome.err) || shortage_is(outcome.err))
		return explain(outcome, ", or leave out --tier");
	if (outcome.err == ONE_THREAD)
		return log_fail(0,
				"the %s uprobes of this kernel see one thread of a process only; "
				"leave out --tier",
				uprobe_link_tier_name(wanted));
	return log_fail(0, "this kernel has no %s uprobes; leave out --tier",
			uprobe_link_tier_name(wanted));
}

int caps_choose(enum uprobe_link_tier wanted, enum uprobe_link_tier *out)
{
	bool any = wanted == UPROBE_LINK_TIER_CNT;
	struct outcome asked = {.err = -ENOENT}, outcome = {};
	libbpf_print_fn_t before;
	struct caps caps = {.best = wanted};
	int err = check_btf();

	if (err)
		return err;
	before = libbpf_set_print(NULL);
	if (!any)
		asked = try_tier(wanted);
	if (asked.err)
		outcome = try_tiers(false, &caps);
	libbpf_set_print(before);
	if (outcome.err)
		return explain(outcome, "");
	if (!any && asked.err)
		return explain_wanted(wanted, asked);
	*out = caps.best;
	return 0;
}

/* The Seccomp field of /proc/TGID/status; -1: unknown, which is not safe; -errno of a shortage. */
static int seccomp_mode(pid_t tgid)
{
	FILE *file _cleanup_file_ = NULL;
	char path[64], line[256];
	int mode = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tgid);
	file = fopen(path, "re");
	if (!file && shortage_is(-errno))
		return -errno;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	return mode;
}

/* A return probe to be tried, and how. */
struct return_trial {
	enum uprobe_link_tier tier;
	struct trial *trial; /* holds the links */
};

/* Attaches a return probe to a function of ours in the child. */
static int arm_return(pid_t child, void *data)
{
	struct return_trial *returns = data;
	struct uprobe_link_progs progs = {};
	struct uprobe_link_point point = {};
	/* As a session it says at the entry that it wants the return. */
	int err = trial_load(returns->tier, "caps_base", &returns->trial);

	if (!err)
		err = self_probe_point(SELF_PROBE_TRIAL, &point);
	if (err)
		return err;
	if (returns->tier == UPROBE_LINK_SESSION)
		progs.entry = returns->trial->prog;
	else
		progs.returns = returns->trial->prog;
	point.returns = true;
	return uprobe_links_add(returns->trial->links, returns->tier, &progs, child,
				"/proc/self/exe", &point, 1);
}

static int return_probes_everywhere(enum uprobe_link_tier tier)
{
	struct return_trial returns = {.tier = tier};
	int err = sandbox_try(arm_return, &returns, self_probe_call);

	if (returns.trial)
		trial_release(returns.trial);
	return err;
}

int caps_return_probes(pid_t tgid, enum uprobe_link_tier tier)
{
	int mode = seccomp_mode(tgid);

	if (shortage_is(mode))
		return mode;
	return mode ? return_probes_everywhere(tier) : 0;
}

int caps_check_returns(pid_t tgid, enum uprobe_link_tier tier)
{
	int err = caps_return_probes(tgid, tier);

	if (err == -EOPNOTSUPP)
		return log_fail(0,
				"process %d runs under seccomp and this kernel kills such a "
				"process at a return probe (CVE-2025-21834); use -t allocs",
				(int)tgid);
	if (err)
		return log_fail(-err,
				"cannot find out whether return probes would harm process %d; try "
				"again, or use -t allocs",
				(int)tgid);
	return 0;
}

int caps_check_returns_everywhere(enum uprobe_link_tier tier)
{
	int err = return_probes_everywhere(tier);

	if (err == -EOPNOTSUPP)
		return log_fail(0, "this kernel kills processes under seccomp at a return probe "
				   "(CVE-2025-21834), and -a would probe them, too; use -t allocs");
	if (err)
		return log_fail(-err, "cannot find out whether return probes would harm processes "
				      "under seccomp; try again, or use -t allocs");
	return 0;
}
