// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One of the many units of a program with as much debug information as a compiler has: the standard
 * library makes it large, and what runs are sixteen functions that call those of other units, as
 * the bits of a number say. bench-user.sh compiles it once and gives `large_table` another name in
 * each copy.
 */
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <stdlib.h>

typedef void (*large_step)(unsigned code, int left);
extern "C" large_step *large_tables[];
extern "C" int large_units;

static std::map<std::string, std::vector<int>> by_name;
static std::unordered_map<int, std::set<std::string>> by_number;

__attribute__((used)) static void use(const std::string &text)
{
	std::regex pattern("a+b*");
	std::stringstream stream;

	if (std::regex_match(text, pattern))
		by_name[text].push_back(1);
	by_number[3].insert(text);
	stream << text << by_name.size();
	for (auto &item : by_name)
		std::sort(item.second.begin(), item.second.end());
}

template <int number> __attribute__((noinline)) static void step(unsigned code, int left)
{
	unsigned next = code * 2654435761u + 12345 + number;

	if (left)
		large_tables[(next >> 8) % large_units][(next >> 4) % 16](next, left - 1);
	else
		__asm__ volatile("" : : "r"(malloc(64)) : "memory");
	__asm__ volatile("" : : : "memory");
}

extern "C" {
large_step large_table[16] = {
	step<0>, step<1>, step<2>,  step<3>,  step<4>,	step<5>,  step<6>,  step<7>,
	step<8>, step<9>, step<10>, step<11>, step<12>, step<13>, step<14>, step<15>,
};
}
