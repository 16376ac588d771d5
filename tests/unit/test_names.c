// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What programs in C++ and Rust call their functions, through symbolize: by every compiler and
 * with every amount of debug information the same.
 */
#include "check.h"
#include "scratch.h"
#include "subject.h"

/* The symbol in `file` whose name has `part` in it; its address, 0 if there is none. */
static uint64_t find_symbol(const char *file, const char *part)
{
	char command[512], name[256];
	FILE *out;
	int found;

	snprintf(command, sizeof(command), "nm '%s' | awk '$3 ~ /%s/ { print $3; exit }'", file,
		 part);
	out = popen(command, "r");
	found = out ? fscanf(out, "%255s", name) : 0;
	if (out)
		pclose(out);
	return found == 1 ? scratch_nm(file, name) : 0;
}

/* Is the function that `part` of a symbol stands for called `name` in `file`, in `source`? */
static bool is_called(const char *file, const char *part, const char *name, const char *source)
{
	struct subject subject;
	const struct symbolize_frame *last = NULL;
	bool ok = subject_ask(&subject, file, NULL, find_symbol(file, part)) && subject.result.cnt;

	if (ok) {
		last = &subject.result.frames[subject.result.cnt - 1];
		ok = !strcmp(last->name, name) && strstr(last->system_name, part) &&
		     (!source ||
		      (last->file && strstr(last->file, source) && last->line && last->start_line));
	}
	if (!ok)
		fprintf(stderr, "%s in %s is %s [%s] %s\n", part, file, last ? last->name : "",
			last ? last->system_name : "", last && last->file ? last->file : "");
	subject_close(&subject);
	return ok;
}

TEST(cplusplus_names)
{
	static const char source[] =
		"struct plain { int n; };\n"
		"namespace { __attribute__((noinline)) int quiet(int n) { asm(\"\"); return n; } "
		"}\n"
		"namespace app {\n"
		"__attribute__((noinline)) int h0123456789abcdef() { asm(\"\"); return 1; }\n"
		"template <class T> struct box {\n"
		"	__attribute__((noinline)) T get(T n) { asm(\"\"); return n; }\n"
		"};\n"
		"}\n"
		"int main() { return quiet(1) + app::h0123456789abcdef() + app::box<int>().get(2); "
		"}\n";
	static const char *const builds[] = {"g++ -g", "g++ -g0", "g++ -g1", "clang++ -g",
					     "clang++ -gline-tables-only"};

	if (!scratch_have("g++ clang++"))
		return;
	scratch_write("names.cc", source);
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const char *file = i == 0 || i == 3 ? "names.cc" : NULL;

		CHECK(scratch_run("%s -O1 names.cc -o names", builds[i]));
		CHECK(is_called("names", "5quiet", "(anonymous namespace)::quiet(int)", file));
		CHECK(is_called("names", "17h0123456789abcdefEv", "app::h0123456789abcdef()",
				file));
		CHECK(is_called("names", "3boxIiE3get", "app::box<int>::get(int)", file));
	}
}

TEST(rust_names)
{
	static const char source[] = "#[inline(never)]\n"
				     "pub fn push_it<T: Clone>(items: &mut Vec<T>, item: T) {\n"
				     "    items.push(item.clone());\n"
				     "}\n"
				     "fn main() {\n"
				     "    let mut items = Vec::new();\n"
				     "    push_it(&mut items, std::env::args().count());\n"
				     "    println!(\"{}\", items.len());\n"
				     "}\n";

	if (!scratch_have("rustc"))
		return;
	scratch_write("app.rs", source);
	CHECK(scratch_run("rustc -g -O -C symbol-mangling-version=legacy -o legacy app.rs 2>err || "
			  "rustc -g -O -o legacy app.rs"));
	CHECK(scratch_run("rustc -g -O -C symbol-mangling-version=v0 -o v0 app.rs"));
	CHECK(is_called("v0", "7push_itj", "app::push_it::<usize>", "app.rs"));
	CHECK(scratch_run("strip -g v0"));
	CHECK(is_called("v0", "7push_itj", "app::push_it::<usize>", NULL));
	if (find_symbol("legacy", "3app7push_it17h"))
		CHECK(is_called("legacy", "3app7push_it17h", "app::push_it", "app.rs"));
}
