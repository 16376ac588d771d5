// SPDX-License-Identifier: GPL-2.0-or-later

// Go that calls C, which allocates; and C in between that calls Go back. Says what its stacks are, as
// the targets in C do.
package main

/*
#include <stdlib.h>

#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

__attribute__((noinline)) static void *take(size_t size)
{
	void *p = malloc(size);

	KEEP(p);
	return p;
}

extern void goBack(size_t size);

__attribute__((noinline)) static void throughC(size_t size)
{
	goBack(size);
	KEEP(&size);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

//go:noinline
func leaf(size C.size_t) {
	C.take(size)
}

//export goBack
func goBack(size C.size_t) {
	leaf(size)
}

//go:noinline
func descend(size C.size_t, depth int) {
	if depth > 0 {
		descend(size, depth-1)
	} else {
		leaf(size)
	}
}

//go:noinline
func around(size C.size_t) {
	C.throughC(size)
}

func await(word string) {
	var b [1]byte

	fmt.Println(word)
	if n, _ := os.Stdin.Read(b[:]); n != 1 {
		os.Exit(4)
	}
}

// framed: since Go 1.21 assembly with a frame of size 0 keeps a frame pointer, if it calls something.
func framed() bool {
	var minor int

	fmt.Sscanf(runtime.Version(), "go1.%d", &minor)
	return minor >= 21
}

// chain says one, given for a Go whose asmcgocall keeps no frame pointer, so that its caller is left
// out.
func chain(text string) {
	if framed() {
		text = strings.ReplaceAll(text, "runtime.asmcgocall;", "runtime.asmcgocall;runtime.cgocall;")
	}
	fmt.Println("CHAIN " + text)
}

func main() {
	done := make(chan bool)

	await("READY")
	descend(70001, 5)
	chain("70001 1 take;!;runtime.asmcgocall;main._Cfunc_take;main.leaf;" +
		"main.descend{6};main.main;runtime.main;runtime.goexit")
	go func() {
		descend(70002, 2)
		done <- true
	}()
	<-done
	chain("70002 1 take;!;runtime.asmcgocall;main._Cfunc_take;main.leaf;" +
		"main.descend{3};main.main.func1;runtime.goexit")
	around(70003)
	back := "70003 1 take;!;runtime.asmcgocall;main._Cfunc_take;main.leaf;" +
		"main.goBack;!{4};runtime.cgocallback;crosscall2;"
	if framed() {
		// crosscall2 pushes rbp twice: what seems to be its return address is none.
		chain(back + "[fp_rejected]")
	} else {
		chain(back + "goBack;throughC;runtime.asmcgocall;main._Cfunc_throughC;main.around;" +
			"main.main;runtime.main;runtime.goexit")
	}
	await("DONE")
}
