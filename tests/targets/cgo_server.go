// SPDX-License-Identifier: GPL-2.0-or-later

// A server in Go whose requests are answered by C: each has a goroutine, whose stack grows, is copied
// and shrinks around the calls, while the collector runs. Answers are sums that C makes in memory that
// it allocates.
//
//	SITE work objects bytes in use and bytes   as the targets in C do, after the answers
package main

/*
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static unsigned long work(size_t size, int keep)
{
	unsigned char *p = malloc(size);
	unsigned long sum = 0;

	memset(p, size % 251, size);
	for (size_t i = 0; i < size; i++)
		sum += p[i];
	if (!keep)
		free(p);
	return sum;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

const requests = 2000

type answer struct {
	request int
	sum     uint64
}

func size(request int) int {
	return 1000 + request%97
}

func keep(request int) bool {
	return request%10 == 0
}

// Frames of more than a kilobyte.
//
//go:noinline
func descend(request, depth int, garbage *[]byte) uint64 {
	var room [1024]byte

	room[depth] = byte(request)
	if depth > 0 {
		return descend(request, depth-1, garbage) + uint64(room[depth]) - uint64(byte(request))
	}
	*garbage = make([]byte, 10000)
	kept := C.int(0)
	if keep(request) {
		kept = 1
	}
	return uint64(C.work(C.size_t(size(request)), kept))
}

func serve(queue <-chan int, answers chan<- answer) {
	for request := range queue {
		go func(request int) {
			var garbage []byte

			sum := descend(request, request%60, &garbage)
			if request%200 == 0 {
				runtime.GC()
			}
			answers <- answer{request, sum + descend(request, 0, &garbage)}
		}(request)
	}
}

func await(word string) {
	var b [1]byte

	fmt.Println(word)
	if n, _ := os.Stdin.Read(b[:]); n != 1 {
		os.Exit(4)
	}
}

func main() {
	queue, answers := make(chan int), make(chan answer)
	var sums [requests]uint64
	objects, bytes, inuseObjects, inuseBytes := 0, 0, 0, 0

	await("READY")
	for i := 0; i < 4; i++ {
		go serve(queue, answers)
	}
	go func() {
		for request := 0; request < requests; request++ {
			queue <- request
		}
	}()
	for range sums {
		a := <-answers
		sums[a.request] = a.sum
		objects += 2
		bytes += 2 * size(a.request)
		if keep(a.request) {
			inuseObjects += 2
			inuseBytes += 2 * size(a.request)
		}
	}
	fmt.Println("SUMS", sums)
	fmt.Println("SITE work", objects, bytes, inuseObjects, inuseBytes)
	await("DONE")
}
