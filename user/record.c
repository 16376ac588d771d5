// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: options. Out: one profile per process and type, a table for people, an exit status. Waits in
 * one poll for the clock, signals, events and the targets' end; in between it looks once a second
 * how large they are.
 */
#include "record.h"

#include "cleanup.h"
#include "command.h"
#include "contain.h"
#include "heap.h"
#include "hold.h"
#include "log.h"
#include "output.h"
#include "session.h"
#include "signals.h"
#include "symbolize.h"
#include "target.h"
#include "top.h"
#include "windows.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>

/* What the loop waits for, in front of the targets' pidfds. */
enum {
	WAIT_SIGNAL,
	WAIT_END,
	WAIT_TICK,
	WAIT_EVENTS,
	WAIT_TARGETS,
};

/* Times of a run. */
struct clock {
	int64_t wall_ns;     /* since 1970, at the start */
	int64_t start_ns;    /* monotonic */
	int64_t duration_ns; /* once it ended */
};

DEFINE_CLEANUP(session, struct session, session_free)
DEFINE_CLEANUP(windows, struct windows, windows_free)

static int64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A timer that fires after first_ns and then every interval_ns (0: once); -1 on failure. */
static int open_timer(int64_t first_ns, int64_t interval_ns)
{
	struct itimerspec spec = {
		.it_value = {first_ns / 1000000000, first_ns % 1000000000},
		.it_interval = {interval_ns / 1000000000, interval_ns % 1000000000},
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && timerfd_settime(fd, 0, &spec, NULL)) {
		close(fd);
		return -1;
	}
	return fd;
}

static uint64_t hits_of(const uint64_t counters[static HB_COUNTER_CNT])
{
	return counters[HB_LOSS_CNT + HB_STAT_HITS] + counters[HB_LOSS_CNT + HB_STAT_STEPPED_HITS];
}

/* One line that overwrites itself. */
static void show_progress(const struct session *session, const struct clock *clock)
{
	double elapsed_s = (read_clock(CLOCK_MONOTONIC) - clock->start_ns) / 1e9;
	double total_s = session->opts->duration_ns / 1e9;
	uint64_t counters[HB_COUNTER_CNT];
	double live_bytes = 0;
	char total[32] = "", live[16];

	loader_counters(session->loader, counters);
	if (total_s > 0)
		snprintf(total, sizeof(total), " of %.0f s", total_s);
	else
		snprintf(total, sizeof(total), " s, Ctrl-C ends");
	if (session->track_live)
		live_bytes = loader_live_bytes(session->loader);
	fprintf(stderr, "\r  %.0f%s   %llu samples   %s live   %.0f hits/s \033[K", elapsed_s,
		total, (unsigned long long)counters[HB_LOSS_CNT + HB_STAT_SAMPLES],
		top_bytes(live_bytes, live), elapsed_s > 0 ? hits_of(counters) / elapsed_s : 0);
	fflush(stderr);
}

/* Notes the targets' memory: whoever ends before the next time was last seen now. */
static void read_memory(const struct session *session, const struct clock *clock, bool exact)
{
	int64_t elapsed_ns = clock->duration_ns ? clock->duration_ns
						: read_clock(CLOCK_MONOTONIC) - clock->start_ns;

	for (size_t i = 0; i < session->target_cnt; i++)
		target_read_memory(session->targets[i], elapsed_ns, exact);
}

/* Until somebody has something to do: milliseconds for poll(). */
static int next_wait_ms(const struct session *session, const struct windows *windows)
{
	int session_ms = session_wait_ms(session), windows_ms = windows_wait_ms(windows);

	if (session_ms < 0 || windows_ms < 0)
		return session_ms < 0 ? windows_ms : session_ms;
	return session_ms < windows_ms ? session_ms : windows_ms;
}

/*
 * Waits until the time is over, a signal comes, or every target has ended. A command says things
 * itself, and no progress comes in between.
 */
static int wait_for_end(struct session *session, struct windows *windows, const struct clock *clock,
			const struct command *command, int signal_fd)
{
	bool shows = log_shows(LOG_LEVEL_INFO) && isatty(STDERR_FILENO) && !command;
	int64_t passed_ns = read_clock(CLOCK_MONOTONIC) - clock->start_ns;
	int64_t left_ns = session->opts->duration_ns - passed_ns;
	_cleanup_close_ int end_fd = -1;
	_cleanup_close_ int tick_fd = open_timer(1000000000, 1000000000);
	_cleanup_free_ struct pollfd *fds =
		calloc(WAIT_TARGETS + session->target_cnt, sizeof(*fds));
	int signal_cnt = 0;
	uint64_t ticks;

	if (session->opts->duration_ns)
		end_fd = open_timer(left_ns > 0 ? left_ns : 1, 0);
	if (!fds || tick_fd < 0 || (session->opts->duration_ns && end_fd < 0))
		return log_fail(errno, "cannot wait");
	fds[WAIT_SIGNAL] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	fds[WAIT_END] = (struct pollfd){.fd = end_fd, .events = POLLIN};
	fds[WAIT_TICK] = (struct pollfd){.fd = tick_fd, .events = POLLIN};
	fds[WAIT_EVENTS].fd = loader_event_fd(session->loader);
	fds[WAIT_EVENTS].events = POLLIN;
	for (size_t i = 0; i < session->target_cnt; i++)
		fds[WAIT_TARGETS + i] =
			(struct pollfd){.fd = session->targets[i]->pidfd, .events = POLLIN};

	while (!session_all_exited(session)) {
		int ready = poll(fds, WAIT_TARGETS + session->target_cnt,
				 next_wait_ms(session, windows));

		if (ready < 0 && errno != EINTR)
			return log_fail(errno, "cannot wait");
		if (windows_step(windows))
			return -EIO;
		if (!ready || session_wait_ms(session) >= 0)
			session_look_again(session);
		if (fds[WAIT_EVENTS].revents)
			session_handle_events(session, false);
		if (fds[WAIT_TICK].revents && read(tick_fd, &ticks, sizeof(ticks)) > 0) {
			read_memory(session, clock, false);
			if (shows)
				show_progress(session, clock);
		}
		if (fds[WAIT_END].revents ||
		    (fds[WAIT_SIGNAL].revents &&
		     signals_end_recording(command, signal_fd, &signal_cnt)))
			break;
		for (size_t i = 0; i < session->target_cnt; i++) {
			if (!fds[WAIT_TARGETS + i].revents)
				continue;
			session->targets[i]->exited = true;
			fds[WAIT_TARGETS + i].fd = -1;
		}
	}
	if (shows)
		fputs("\r\033[K", stderr);
	return 0;
}

/* Says that every probe is in place: to people, and to whoever holds the other end of the fd. */
static int announce(const struct session *session)
{
	const struct opts *opts = session->opts;
	char text[256];
	size_t len = 0;

	for (size_t i = 0; i < session->target_cnt && len < sizeof(text) - 32; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d (%s)", i ? ", " : "",
				(int)session->targets[i]->tgid, session->targets[i]->comm);
	log_line(LOG_LEVEL_INFO, "recording %s by %s probes, one sample per %llu bytes", text,
		 uprobe_link_tier_name(session->tier), (unsigned long long)opts->rate_bytes);
	if (opts->ready_fd >= 0 && TEMP_FAILURE_RETRY(write(opts->ready_fd, "\n", 1)) != 1)
		return log_fail(errno, "cannot write to --ready-fd %d", opts->ready_fd);
	return 0;
}

static unsigned terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* What was not recorded, for the budget's sake. */
static void show_coverage(const struct profile_coverage *coverage, const struct clock *clock,
			  FILE *out)
{
	if (!coverage->window_cnt)
		return;
	fprintf(out,
		"recorded: %.2f of %.2f s in %u window%s; all of it would have cost %.0f%% of the "
		"processes' time (--max-overhead none)\n",
		coverage->seen_ns / 1e9, clock->duration_ns / 1e9, coverage->window_cnt,
		coverage->window_cnt == 1 ? "" : "s", 100 * coverage->full_share);
	if (coverage->bursts)
		fputs("in use: allocated in one of the windows and alive at its end\n", out);
}

/* What the probes took from the machine, by the cost measured at the start. */
static void show_cost(const struct session *session, const struct clock *clock,
		      const uint64_t counters[static HB_COUNTER_CNT], FILE *out)
{
	const struct loader_cost *cost = &session->cost;
	uint64_t emulated = counters[HB_LOSS_CNT + HB_STAT_HITS];
	uint64_t stepped = counters[HB_LOSS_CNT + HB_STAT_STEPPED_HITS];
	double spent_ns = loader_spent_ns(cost, counters);
	double seconds = clock->duration_ns / 1e9;

	fprintf(out, "probes: %.0f hits/s", (emulated + stepped) / seconds);
	if (cost->emulated_ns > 0)
		fprintf(out, " at %.2f us (measured here): %.1f%% of one core",
			cost->emulated_ns / 1e3, 100 * spent_ns / clock->duration_ns);
	if (stepped)
		fprintf(out, "; %llu hits single-stepped at %.1f us", (unsigned long long)stepped,
			cost->stepped_ns / 1e3);
	fputc('\n', out);
}

/* What one target's profile is made of. */
struct finishing {
	const struct session *session;
	const struct target *target;
	const struct heap *heap;
	struct profile_coverage coverage;
	const struct clock *clock;
	const uint64_t *counters;
	struct symbolizer *symbolizer; /* NULL: without names */
};

/* heap_profile(), and if names are what we lack memory or descriptors for, without them. */
static int make_profile(const struct finishing *f, const struct heap_source *source, bool *partial,
			struct profile *profile)
{
	const struct mappings *mappings = &f->target->mappings;
	int err = heap_profile(f->heap, source, mappings, f->symbolizer, profile);

	if (!err || !f->symbolizer)
		return err;
	log_warn("process %d (%s): no memory, or no descriptors, for names; the profile has "
		 "addresses only",
		 (int)f->target->tgid, f->target->comm);
	*partial = true;
	return heap_profile(f->heap, source, mappings, NULL, profile);
}

/* Makes, writes and shows the profile of one target. */
static int finish_target(const struct finishing *f, bool *partial)
{
	const struct session *session = f->session;
	const struct target *target = f->target;
	const struct clock *clock = f->clock;
	const struct opts *opts = session->opts;
	FILE *out = output_people(opts);
	struct heap_source source = {
		.tgid = target->tgid,
		.comm = target->comm,
		.rate_bytes = opts->rate_bytes,
		.time_ns = clock->wall_ns,
		.duration_ns = clock->duration_ns,
		.tracks_inuse = session->track_live,
		.epoch = target->epoch,
		.counters = f->counters,
		.memory = target->memory,
		.coverage = f->coverage,
	};
	struct profile profile = {};
	int err;

	err = make_profile(f, &source, partial, &profile);
	if (err)
		return log_fail(-err, "cannot make the profile");
	err = output_write(opts, target, &profile);
	if (!opts->quiet && opts->top)
		top_write(&profile, opts->top, terminal_width(), out);
	*partial |= profile_is_partial(&profile);
	profile_clear(&profile);
	return err;
}

/* In the result of finish_one(), beside enum opts_exit: why is said. */
#define SAID 4

/* finish_target(), whose result another process understands. */
static int finish_one(void *data)
{
	bool partial = false;
	enum opts_exit status = OPTS_EXIT_FAILED;

	if (!finish_target(data, &partial))
		status = partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
	if ((fflush(stdout) || ferror(stdout)) && status != OPTS_EXIT_FAILED) {
		log_fail(errno, "cannot write to standard output");
		status = OPTS_EXIT_PARTIAL;
	}
	return status | (log_failed() ? SAID : 0);
}

/* The same in a copy of us, since it reads files that anybody wrote; once more if that breaks it.
 */
static enum opts_exit finish_contained(struct finishing *f)
{
	bool crashed;
	int result;

	crashed = !contain_call(finish_one, f, &result);
	if (crashed) {
		log_warn("process %d (%s): names cannot be read, a library crashed; the profile "
			 "has addresses only",
			 (int)f->target->tgid, f->target->comm);
		f->symbolizer = NULL;
		result = finish_one(f);
	}
	if (result & SAID)
		log_set_failed();
	result &= ~SAID;
	return crashed && result == OPTS_EXIT_WHOLE ? OPTS_EXIT_PARTIAL : (enum opts_exit)result;
}

/* Reads the maps, which nobody changes any more, and writes everything. */
static enum opts_exit finish(struct session *session, const struct windows *windows,
			     const struct clock *clock)
{
	const struct profile_coverage coverage = windows_coverage(windows);
	FILE *out = output_people(session->opts);
	uint64_t counters[HB_COUNTER_CNT];
	bool partial = false, failed = false;

	loader_counters(session->loader, counters);
	for (size_t i = 0; i < session->target_cnt; i++) {
		struct finishing finishing = {
			.session = session,
			.target = session->targets[i],
			.heap = windows_heap(windows, i),
			.coverage = coverage,
			.clock = clock,
			.counters = counters,
			.symbolizer = session->symbolizer,
		};
		enum opts_exit status = finish_contained(&finishing);

		partial |= status == OPTS_EXIT_PARTIAL;
		failed |= status == OPTS_EXIT_FAILED;
	}
	if (!session->opts->quiet && session->opts->top) {
		show_coverage(&coverage, clock, out);
		show_cost(session, clock, counters, out);
	}
	partial |= session->incomplete;
	return failed ? OPTS_EXIT_FAILED : partial ? OPTS_EXIT_PARTIAL : OPTS_EXIT_WHOLE;
}

/* With every probe in place: says so, waits for the end, and takes them out. 0 or -errno, logged.
 */
static int record(struct session *session, struct windows *windows, struct clock *clock,
		  struct command *command, int signal_fd)
{
	int err = announce(session);

	if (err)
		return err;
	if (command)
		command_set_running(command);
	hold_release(session);
	for (size_t i = 0; i < session->target_cnt; i++)
		target_prepare_symbols(session->targets[i], session->symbolizer);
	err = wait_for_end(session, windows, clock, command, signal_fd);
	hold_end(session);
	if (err)
		return err;
	clock->duration_ns = read_clock(CLOCK_MONOTONIC) - clock->start_ns;
	read_memory(session, clock, true);
	err = windows_end(windows);
	if (err)
		return err;
	session_handle_events(session, true);
	if (command && session_all_exited(session))
		command_wait(command);
	else if (command)
		log_line(LOG_LEVEL_INFO, "process %d (%s) goes on", (int)command_tgid(command),
			 session->targets[0]->comm);
	signals_let_end_us(signal_fd);
	return 0;
}

enum opts_exit record_run(const struct opts *opts, struct command *command)
{
	struct session *session _cleanup_(cleanup_session) = NULL;
	struct windows *windows _cleanup_(cleanup_windows) = NULL;
	_cleanup_close_ int signal_fd = signals_open();
	pid_t tgid = command ? command_tgid(command) : -1;
	struct opts own = *opts;
	struct clock clock = {};

	if (signal_fd < 0) {
		log_fail(errno, "cannot wait for signals");
		return OPTS_EXIT_FAILED;
	}
	if (command) {
		own.tgids = &tgid;
		own.tgid_cnt = 1;
	}
	if (session_open(&own, command, &session))
		return OPTS_EXIT_FAILED;
	clock.wall_ns = read_clock(CLOCK_REALTIME);
	clock.start_ns = read_clock(CLOCK_MONOTONIC);
	if (windows_start(session, opts->duration_ns, &windows))
		return OPTS_EXIT_FAILED;
	read_memory(session, &clock, false);
	if (record(session, windows, &clock, command, signal_fd))
		return OPTS_EXIT_FAILED;
	return finish(session, windows, &clock);
}
