// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: SIGINT, SIGTERM, SIGHUP. Out: a descriptor to wait for, and what they mean for the recording.
 */
#include "signals.h"

#include "cleanup.h"
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

/*
 * Signals that end the recording. SIGHUP stays ignored where we were started so (nohup); SIGINT
 * does not, since a shell ignores it for every background job of a script.
 */
static void ending_signals(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

int signals_open(void)
{
	sigset_t set;

	ending_signals(&set);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool signals_pending(void)
{
	sigset_t wanted, pending;

	ending_signals(&wanted);
	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < ARRAY_CNT(ending); i++)
		if (sigismember(&wanted, ending[i]) && sigismember(&pending, ending[i]))
			return true;
	return false;
}

void signals_let_end_us(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t set;

	ending_signals(&set);
	/* Whatever is pending of an ignored signal is thrown away. */
	for (size_t i = 0; i < ARRAY_CNT(ending); i++)
		if (!sigaction(ending[i], &ignore, &before))
			sigaction(ending[i], &before, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool signals_end_recording(const struct command *command, int signal_fd, int *signal_cnt)
{
	struct signalfd_siginfo info;

	if (!command)
		return true;
	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		command_pass_signal(command, (int)info.ssi_signo, info.ssi_code);
		++*signal_cnt;
	}
	return *signal_cnt > 1;
}
