// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs the pprof importer of the speedscope package on a profile and prints, per function, its
// total and own weight.
//   node speedscope.mjs DIRECTORY-OF-THE-PACKAGE PROFILE
//
// The package is a bundle for browsers that offers nothing to call. So the bundle runs with a
// stand-in for the browser, and its last act, which draws the page, is replaced by handing out the
// importer, found by what it does: decode a perftools.profiles.Profile.
import { readFileSync, readdirSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import vm from "node:vm";

// The default would print the bundle, which is one line.
process.on("uncaughtException", (error) => {
	console.error(error.message);
	process.exit(1);
});

const [directory, path] = process.argv.slice(2);
const release = `${directory}/dist/release`;
const name = readdirSync(release).find((file) => /^speedscope-.*\.js$/.test(file));
const bundle = readFileSync(`${release}/${name}`, "utf8");

const importer = bundle.match(
	/function ([\w$]+)\([\w$]+\)\{if\([\w$]+\.byteLength===0\)return null;let [\w$]+;try\{[\w$]+=([\w$]+)\.perftools/,
);
const setup = importer && bundle.match(
	new RegExp(`([\\w$]+)=[\\w$]+\\(\\(\\)=>\\{"use strict";${importer[2].replace("$", "\\$")}=`),
);
const last = bundle.lastIndexOf("console.log(`speedscope v");
if (!importer || !setup || last < 0)
	throw new Error("this speedscope is not made as expected");

// Answers everything, does nothing; only that it has no 64-bit integers of its own.
const absent = ["Long", "dcodeIO"];
const answer = (key) => (key === Symbol.toPrimitive ? () => "" : anything);
const anything = new Proxy(function () {}, {
	get: (target, key) => (absent.includes(key) ? undefined : answer(key)),
	set: () => true,
	apply: () => anything,
	construct: () => anything,
	has: () => true,
});
const context = vm.createContext({
	self: anything, window: anything, document: anything, navigator: anything, location: anything,
	localStorage: anything, requestAnimationFrame: anything, addEventListener: anything,
	console, setTimeout, clearTimeout, TextDecoder, TextEncoder, Uint8Array, ArrayBuffer,
});
vm.runInContext(
	`${bundle.slice(0, last)}${setup[1]}();globalThis.importer=${importer[1]};})();`,
	context,
);

const profile = context.importer(new Uint8Array(gunzipSync(readFileSync(path))).buffer);
if (!profile)
	throw new Error("speedscope does not take it for a profile");
profile.forEachFrame((frame) =>
	console.log(frame.name, frame.getTotalWeight(), frame.getSelfWeight()));
