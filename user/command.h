/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that we start: our child, which waits before its exec until it is told to go. Where it
 * is held after that is session's affair; that nobody leaves it stopped is ours.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct command;

/*
 * Forks the child that will execute `argv` (NULL-terminated, borrowed, looked for in PATH as
 * execvp(3) does), and a keeper that lets go on who is held if we die. Call it
 * first: the child keeps descriptors, limits, signal mask and dispositions as they are now, but
 * not `ready_fd` (-1: none), which is ours. 0 and *out (command_free()), or -errno, logged.
 */
int command_start(char *const *argv, int ready_fd, struct command **out);

/* Process id of the child; it is not another's before command_free(). */
pid_t command_tgid(const struct command *command);

/* How the keeper ends holds; descriptors are borrowed. */
struct command_holds {
	int map_fd;	     /* the map `holds` */
	int switch_fd;	     /* memory to map, in which a number of 4 bytes ends holds */
	uint64_t switch_off; /* where in it */
};

/*
 * Tells the keeper of them: if we die nobody is held any more, and all who are go on. 0 or -errno,
 * logged.
 */
int command_keep(const struct command *command, const struct command_holds *holds);

/* Lets the child execute its program, and waits until it did. 0 or -errno, logged. */
int command_go(struct command *command);

/* The program may run code of its own now: from here on it is never ended by us. */
void command_set_running(struct command *command);

/*
 * Hands a signal to the program that somebody sent to us, unless the terminal sent it: then the
 * program has it, too.
 */
void command_pass_signal(const struct command *command, int number, int code);

/* Waits for the program's last moments, after its end was seen elsewhere. */
void command_wait(struct command *command);

/*
 * The exit status of the program as a shell has it: its own, 128 + the number of the signal that
 * ended it, 126 if it cannot be executed, 127 if it is not there. -1 if it has not ended.
 */
int command_status(struct command *command);

/* Ends a child that is not running yet, sends the keeper away, and frees; NULL is fine. */
void command_free(struct command *command);

#endif
