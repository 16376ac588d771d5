# SPDX-License-Identifier: GPL-2.0-or-later
#
# Everything is built below $(BUILD):
#   bpf/*.bpf.c  --clang--> objects --bpftool gen object--> heapbpf.bpf.o --gen skeleton--> .skel.h
#   proto/*.proto --protoc--> .pb-c.[ch]
#   user/*.c     --cc--> libheapbpf.a (all but main) --> heapbpf, unit tests
# caps.bpf.c is an object of its own: it asks the kernel what it can do before the rest is loaded.

BUILD   ?= build
# One name for one directory: dependency files of a build by the other would name no target of ours.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
PREFIX  ?= /usr/local
DESTDIR ?=
CLANG   ?= clang
BPFTOOL ?= $(firstword $(shell command -v bpftool 2>/dev/null) /usr/sbin/bpftool)
PKGCONF ?= pkg-config
VERSION := $(shell sed -n 's/^version //p' scripts/version)

KARCH   := $(shell uname -m)
BPFARCH := $(if $(filter x86_64,$(KARCH)),x86,$(KARCH))

PKGS     := libbpf libdw libelf libprotobuf-c capstone liblzma zlib
CFLAGS   ?= -O2 -g
# Tests set -Werror; what a newer compiler suspects keeps nobody from a build.
WERROR   ?=
WARN     := -Wall -Wextra $(WERROR) -Wswitch-enum -Wshadow -Wstrict-prototypes -Wmissing-prototypes
CPPFLAGS += -D_GNU_SOURCE -DHEAPBPF_VERSION='"$(VERSION)"' -I$(BUILD) -include user/poison.h
HB_CFLAGS := -std=gnu11 $(WARN) $(CFLAGS) $(SAN) $(shell $(PKGCONF) --cflags $(PKGS)) -MMD -MP
LIBS     := $(shell $(PKGCONF) --libs $(PKGS)) -liberty -lm -lpthread
BPF_CFLAGS := -std=gnu11 --target=bpf -mcpu=v3 -O2 -g -Wall -Wextra $(WERROR) -Wno-unused-function -Wno-unused-parameter \
	-Wno-missing-declarations -D__TARGET_ARCH_$(BPFARCH) -Ivmlinux/$(KARCH) -MMD -MP

ROOM_SRCS := $(filter-out bpf/caps.bpf.c,$(wildcard bpf/*.bpf.c))
ROOM_OBJS := $(ROOM_SRCS:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
SKELS     := $(BUILD)/heapbpf.skel.h $(BUILD)/caps.skel.h
PB        := $(BUILD)/profile.pb-c.h
USER_OBJS := $(patsubst user/%.c,$(BUILD)/user/%.o,$(filter-out user/main.c,$(wildcard user/*.c)))
UNITS     := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

.PHONY: all static bench check unit install uninstall clean format lint
.DELETE_ON_ERROR:
all: $(BUILD)/heapbpf

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/heapbpf.bpf.o: $(ROOM_OBJS)
	$(BPFTOOL) gen object $@ $^
$(BUILD)/caps.bpf.o: $(BUILD)/bpf/caps.bpf.o
	cp $< $@

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BUILD)/%.pb-c.c $(BUILD)/%.pb-c.h: proto/%.proto
	@mkdir -p $(@D)
	protoc --c_out=$(BUILD) --proto_path=proto $<

$(BUILD)/%.pb-c.o: $(BUILD)/%.pb-c.c
	$(CC) -O2 -g $(SAN) $(shell $(PKGCONF) --cflags libprotobuf-c) -c $< -o $@

$(BUILD)/user/%.o: user/%.c | $(SKELS) $(PB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(HB_CFLAGS) -c $< -o $@

$(BUILD)/libheapbpf.a: $(USER_OBJS) $(BUILD)/profile.pb-c.o
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/heapbpf: $(BUILD)/user/main.o $(BUILD)/libheapbpf.a
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(LIBS)

# One file without library dependencies: copy it to a server and use it. Ours once more at the end:
# user/eu_search.c has what libraries may lack.
STATIC_LIBS = $(shell $(PKGCONF) --static --libs $(PKGS)) -liberty -lm -lpthread
static: $(BUILD)/heapbpf-static
$(BUILD)/heapbpf-static: $(BUILD)/user/main.o $(BUILD)/libheapbpf.a
	$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ $(STATIC_LIBS) $(BUILD)/libheapbpf.a

# A unit test sees the headers of every room and links what it uses.
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libheapbpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Iuser -Ibpf -Itests/unit $(HB_CFLAGS) -MF $@.d -o $@ $< \
		$(BUILD)/libheapbpf.a $(LIBS)

unit: $(UNITS)

# Unit tests run with sanitizers from a build directory of their own; the rest runs the real build.
check: all
	$(MAKE) BUILD=$(BUILD)/san SAN="-fsanitize=address,undefined -fno-omit-frame-pointer" unit
	BUILD=$(BUILD) tests/run.sh

install: all
	install -D -m 755 $(BUILD)/heapbpf $(DESTDIR)$(PREFIX)/bin/heapbpf
	install -D -m 644 user/heapbpf.8 $(DESTDIR)$(PREFIX)/share/man/man8/heapbpf.8
	install -D -m 644 scripts/heapbpf.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/heapbpf

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/heapbpf $(DESTDIR)$(PREFIX)/share/man/man8/heapbpf.8 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/heapbpf

bench: all
	scripts/bench.sh
	scripts/bench-budget.sh
	scripts/bench-accuracy.sh
	scripts/bench-peers.sh
	scripts/bench-all.sh
	scripts/bench-user.sh

format:
	git ls-files -z '*.[ch]' '*.cc' ':!vmlinux' | xargs -0 clang-format -i
lint:
	scripts/lint.sh
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
