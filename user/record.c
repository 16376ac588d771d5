// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: options. Out: a recording that came to its end, handed to finish, and an exit status. Waits
 * in one poll for the clock, signals, events and the targets' end; in between it looks once a
 * second how large they are.
 */
#include "record.h"

#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "finish.h"
#include "follow.h"
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
#include <sys/timerfd.h>

/* What the loop waits for. */
enum {
	WAIT_SIGNAL,
	WAIT_END,
	WAIT_TICK,
	WAIT_EVENTS,
	WAIT_TARGETS,
	WAIT_CNT,
};

DEFINE_CLEANUP(session, struct session, session_free)
DEFINE_CLEANUP(windows, struct windows, windows_free)

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
static void show_progress(const struct session *session, const struct finish_clock *clock)
{
	double elapsed_s = (clock_ns(CLOCK_MONOTONIC) - clock->start_ns) / 1e9;
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

/* So many processes are asked for their memory in a second. */
#define MEMORY_READS 64

/*
 * Notes the memory of targets, from number *next on in turns: whoever ends before the next time was
 * last seen now.
 */
static void read_memory(const struct session *session, const struct finish_clock *clock,
			size_t *next)
{
	int64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC) - clock->start_ns;
	int reads = 0;

	for (size_t i = 0; i < session->targets.cnt && reads < MEMORY_READS; i++) {
		struct target *target = session->targets.all[(*next)++ % session->targets.cnt];

		if (target->exited)
			continue;
		target_read_memory(target, elapsed_ns, false);
		reads++;
	}
}

/* The same at the end, exactly, of all that will have a profile. */
static void read_last_memory(const struct session *session, const struct finish_clock *clock)
{
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		if (!target->joined || heap_totals(target->heap, target->epoch).samples)
			target_read_memory(target, clock->duration_ns, true);
	}
}

/* Until somebody has something to do: milliseconds for poll(). */
static int next_wait_ms(const struct session *session, const struct windows *windows)
{
	int session_ms = session_wait_ms(session), windows_ms = windows_wait_ms(windows);

	if (session_ms < 0 || windows_ms < 0)
		return session_ms < 0 ? windows_ms : session_ms;
	return session_ms < windows_ms ? session_ms : windows_ms;
}

/* The clocks of a recording, for poll(); -1: none. */
struct timers {
	int end_fd, tick_fd; /* owned */
};

static void close_timers(struct timers *timers)
{
	cleanup_close(&timers->end_fd);
	cleanup_close(&timers->tick_fd);
}

/* 0 or -errno, logged. */
static int open_timers(const struct opts *opts, const struct finish_clock *clock,
		       struct timers *out)
{
	int64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - clock->start_ns;
	int64_t left_ns = opts->duration_ns - passed_ns;

	out->tick_fd = open_timer(1000000000, 1000000000);
	if (opts->duration_ns)
		out->end_fd = open_timer(left_ns > 0 ? left_ns : 1, 0);
	if (out->tick_fd < 0 || (opts->duration_ns && out->end_fd < 0))
		return log_fail(errno, "cannot wait");
	return 0;
}

/*
 * Waits until the time is over, a signal comes, or every target has ended. A command says things
 * itself, and no progress comes in between.
 */
static int wait_for_end(struct session *session, struct windows *windows,
			const struct finish_clock *clock, const struct command *command,
			int signal_fd)
{
	bool shows = log_shows(LOG_LEVEL_INFO) && isatty(STDERR_FILENO) && !command;
	struct timers timers _cleanup_(close_timers) = {-1, -1};
	int signal_cnt = 0, err = open_timers(session->opts, clock, &timers);
	struct pollfd fds[WAIT_CNT] = {
		[WAIT_SIGNAL] = {.fd = signal_fd, .events = POLLIN},
		[WAIT_END] = {.fd = timers.end_fd, .events = POLLIN},
		[WAIT_TICK] = {.fd = timers.tick_fd, .events = POLLIN},
		[WAIT_EVENTS] = {.fd = loader_event_fd(session->loader), .events = POLLIN},
		[WAIT_TARGETS] = {.fd = session->targets.ends_fd, .events = POLLIN},
	};
	size_t next = 0;
	uint64_t ticks;

	while (!err && session_goes_on(session)) {
		int ready = poll(fds, WAIT_CNT, next_wait_ms(session, windows));

		if (ready < 0 && errno != EINTR)
			return log_fail(errno, "cannot wait");
		err = windows_step(windows);
		if (!ready || session_wait_ms(session) >= 0)
			session_look_again(session);
		/* What a process did last is told before its end. */
		if (fds[WAIT_EVENTS].revents || fds[WAIT_TARGETS].revents)
			session_handle_events(session, false);
		if (fds[WAIT_TICK].revents && read(timers.tick_fd, &ticks, sizeof(ticks)) > 0) {
			read_memory(session, clock, &next);
			session_tidy(session);
			if (shows)
				show_progress(session, clock);
		}
		if (fds[WAIT_END].revents ||
		    (fds[WAIT_SIGNAL].revents &&
		     signals_end_recording(command, signal_fd, &signal_cnt)))
			break;
		if (fds[WAIT_TARGETS].revents)
			targets_note_ends(&session->targets);
	}
	if (shows)
		fputs("\r\033[K", stderr);
	return err;
}

/* Says that every probe is in place: to people, and to whoever holds the other end of the fd. */
static int announce(const struct session *session)
{
	const struct opts *opts = session->opts;
	char text[256];
	size_t len = 0;

	if (opts->everybody)
		snprintf(text, sizeof(text), "whatever allocates");
	for (size_t i = 0; !opts->everybody && i < session->targets.cnt && len < sizeof(text) - 32;
	     i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d (%s)", i ? ", " : "",
				(int)session->targets.all[i]->tgid, session->targets.all[i]->comm);
	log_line(LOG_LEVEL_INFO, "recording %s by %s probes, one sample per %llu bytes", text,
		 uprobe_link_tier_name(session->tier), (unsigned long long)opts->rate_bytes);
	if (opts->ready_fd >= 0 && TEMP_FAILURE_RETRY(write(opts->ready_fd, "\n", 1)) != 1)
		return log_fail(errno, "cannot write to --ready-fd %d", opts->ready_fd);
	return 0;
}

/* With every probe in place: says so, waits for the end, and takes them out. 0 or -errno, logged.
 */
static int record(struct session *session, struct windows *windows, struct finish_clock *clock,
		  struct command *command, int signal_fd)
{
	int err = announce(session);

	if (err)
		return err;
	if (command)
		command_set_running(command);
	hold_release(session);
	for (size_t i = 0; i < session->targets.cnt; i++)
		target_prepare_symbols(session->targets.all[i], session->symbolizer);
	err = wait_for_end(session, windows, clock, command, signal_fd);
	hold_end(session);
	if (err)
		return err;
	clock->duration_ns = clock_ns(CLOCK_MONOTONIC) - clock->start_ns;
	for (size_t i = 0; i < session->targets.cnt; i++)
		follow_renew(session, session->targets.all[i], false);
	err = windows_end(windows);
	if (err)
		return err;
	session_handle_events(session, true);
	read_last_memory(session, clock);
	session->incomplete |= probes_check_hints(&session->probes) != 0;
	if (command && !session->targets.alive_cnt)
		command_wait(command);
	else if (command)
		log_line(LOG_LEVEL_INFO, "process %d (%s) goes on", (int)command_tgid(command),
			 session->targets.all[0]->comm);
	signals_let_end_us();
	return 0;
}

/* Takes away what output_make_directory() made, if nothing came into it. */
static void cleanup_directory(char **directory)
{
	if (*directory)
		rmdir(*directory);
	free(*directory);
}

enum opts_exit record_run(const struct opts *opts, struct command *command)
{
	struct session *session _cleanup_(cleanup_session) = NULL;
	struct windows *windows _cleanup_(cleanup_windows) = NULL;
	_cleanup_close_ int signal_fd = signals_open();
	pid_t tgid = command ? command_tgid(command) : -1;
	char *directory _cleanup_(cleanup_directory) = NULL;
	struct opts own = *opts;
	struct finish_clock clock = {};

	if (signal_fd < 0) {
		log_fail(errno, "cannot wait for signals");
		return OPTS_EXIT_FAILED;
	}
	if (command) {
		own.tgids = &tgid;
		own.tgid_cnt = 1;
	}
	if (opts_are_selected(opts) && !opts->output) {
		if (output_make_directory(&directory))
			return OPTS_EXIT_FAILED;
		own.output = directory;
	}
	if (session_open(&own, command, &session))
		return OPTS_EXIT_FAILED;
	clock.wall_ns = clock_ns(CLOCK_REALTIME);
	clock.start_ns = clock_ns(CLOCK_MONOTONIC);
	if (windows_start(session, opts->duration_ns, &windows))
		return OPTS_EXIT_FAILED;
	read_memory(session, &clock, &(size_t){0});
	if (record(session, windows, &clock, command, signal_fd))
		return OPTS_EXIT_FAILED;
	return finish(session, windows, &clock);
}
