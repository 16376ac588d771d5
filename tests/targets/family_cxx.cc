// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every form of operator new and delete, and what the standard library does with them.
 * build: -std=c++17 -fsized-deallocation
 */
#include "truth.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

/* operator new(size_t max) throws; volatile, so that no compiler knows. */
static volatile size_t too_much = PTRDIFF_MAX;

struct alignas(64) Wide {
	char bytes[128];
};

SITE(site_new)
{
	for (int i = 0; i < 1000; i++) {
		void *p = took(self, ::operator new(100), 100);

		if (i % 2) {
			::operator delete(p);
			gave(self, 100);
		}
	}
}

SITE(site_new_array)
{
	char *kept = new char[333];
	char *dropped = new char[444];

	took(self, kept, 333);
	took(self, dropped, 444);
	delete[] dropped;
	gave(self, 444);
}

SITE(site_new_nothrow)
{
	/* The one that fails throws and catches inside, and the exception object comes and goes. */
	self->allocs_open = 1;
	took(self, ::operator new(50, std::nothrow), 50);
	took(self, ::operator new[](60, std::nothrow), 60);
	took(self, ::operator new(too_much, std::nothrow), 1);
	::operator delete(took(self, ::operator new(70, std::nothrow), 70), std::nothrow);
	gave(self, 70);
}

SITE(site_new_throws)
{
	/* The exception object comes and goes. */
	self->allocs_open = 1;
	took(self, malloc(20), 20);
	try {
		TRUTH_KEEP(::operator new(too_much));
		_exit(5);
	} catch (const std::bad_alloc &) {
		took(self, malloc(21), 21);
	}
}

SITE(site_new_aligned)
{
	Wide *kept = new Wide;
	Wide *many = new Wide[4];

	took(self, kept, sizeof(Wide));
	took(self, many, 4 * sizeof(Wide));
	delete[] many;
	gave(self, 4 * sizeof(Wide));
	took(self, ::operator new(256, std::align_val_t(128), std::nothrow), 256);
	::operator delete(took(self, ::operator new(512, std::align_val_t(128)), 512),
			  std::align_val_t(128));
	gave(self, 512);
}

SITE(site_delete_sized)
{
	::operator delete(took(self, ::operator new(81), 81), 81);
	gave(self, 81);
	::operator delete[](took(self, ::operator new[](82), 82), 82);
	gave(self, 82);
	::operator delete(took(self, ::operator new(128, std::align_val_t(64)), 128), 128,
			  std::align_val_t(64));
	gave(self, 128);
	took(self, ::operator new(83), 83);
}

/*
 * What each form does, for sizes on either side of what allocators treat in different ways. They
 * are multiples of `unit`: libstdc++ asks malloc's family for whole multiples of the alignment.
 */
template <typename New, typename Delete>
static void turns(struct truth *self, New get, Delete give, size_t unit = 1)
{
	for (size_t size = unit; size <= (16 << 20); size = size * 2 + unit) {
		took(self, get(size), size);
		give(took(self, get(size), size), size);
		gave(self, size);
	}
}

SITE(site_forms)
{
	turns(
		self, [](size_t n) { return ::operator new(n); },
		[](void *p, size_t) { ::operator delete(p); });
	turns(
		self, [](size_t n) { return ::operator new[](n); },
		[](void *p, size_t) { ::operator delete[](p); });
	turns(
		self, [](size_t n) { return ::operator new(n); },
		[](void *p, size_t n) { ::operator delete(p, n); });
	turns(
		self, [](size_t n) { return ::operator new[](n); },
		[](void *p, size_t n) { ::operator delete[](p, n); });
	turns(
		self, [](size_t n) { return ::operator new(n, std::nothrow); },
		[](void *p, size_t) { ::operator delete(p, std::nothrow); });
	turns(
		self, [](size_t n) { return ::operator new[](n, std::nothrow); },
		[](void *p, size_t) { ::operator delete[](p, std::nothrow); });
}

template <size_t alignment> static void aligned_turns(struct truth *self)
{
	constexpr std::align_val_t align{alignment};

	turns(
		self, [](size_t n) { return ::operator new(n, align); },
		[](void *p, size_t) { ::operator delete(p, align); }, alignment);
	turns(
		self, [](size_t n) { return ::operator new[](n, align); },
		[](void *p, size_t) { ::operator delete[](p, align); }, alignment);
	turns(
		self, [](size_t n) { return ::operator new(n, align); },
		[](void *p, size_t n) { ::operator delete(p, n, align); }, alignment);
	turns(
		self, [](size_t n) { return ::operator new[](n, align); },
		[](void *p, size_t n) { ::operator delete[](p, n, align); }, alignment);
	turns(
		self, [](size_t n) { return ::operator new(n, align, std::nothrow); },
		[](void *p, size_t) { ::operator delete(p, align, std::nothrow); }, alignment);
	turns(
		self, [](size_t n) { return ::operator new[](n, align, std::nothrow); },
		[](void *p, size_t) { ::operator delete[](p, align, std::nothrow); }, alignment);
}

SITE(site_forms_aligned)
{
	aligned_turns<16>(self);
	aligned_turns<64>(self);
	aligned_turns<4096>(self);
	aligned_turns<32768>(self);
}

SITE(site_delete_null)
{
	::operator delete(nullptr);
	took(self, ::operator new(84), 84);
}

SITE(site_string)
{
	static std::string *kept;

	kept = new std::string(1000, 'x');
	took(self, kept, sizeof(std::string));
	took(self, &(*kept)[0], 1001);
}

SITE(site_vector)
{
	static std::vector<int> kept;

	kept.reserve(1000);
	took(self, kept.data(), 4000);
	kept.reserve(2000);
	gave(self, 4000);
	took(self, kept.data(), 8000);
}

SITE(site_map)
{
	static std::map<int, int> kept;
	/* A node: three pointers, a colour, and the pair. */
	const size_t node = sizeof(std::_Rb_tree_node<std::pair<const int, int>>);

	for (int i = 0; i < 100; i++) {
		kept[i] = i;
		took(self, &kept[i], node);
	}
	for (int i = 0; i < 40; i++) {
		kept.erase(i);
		gave(self, node);
	}
}

/* "family_cxx calm" throws nothing: mimalloc, written in C, ends the program instead. */
int main(int argc, char **argv)
{
	bool calm = argc > 1 && !strcmp(argv[1], "calm");

	await("READY");
	RUN(site_new);
	RUN(site_new_array);
	if (!calm) {
		RUN(site_new_nothrow);
		RUN(site_new_throws);
	}
	RUN(site_forms);
	RUN(site_forms_aligned);
	RUN(site_new_aligned);
	RUN(site_delete_sized);
	RUN(site_delete_null);
	RUN(site_string);
	RUN(site_vector);
	RUN(site_map);
	finish();
	return 0;
}
