// SPDX-License-Identifier: GPL-2.0-or-later
//
// Two allocations below JavaScript functions, one of them 30 calls deeper than the other.
'use strict';

const fs = require('fs');

const byte = Buffer.alloc(1);
const kept = [];

function wait(word) {
	fs.writeSync(1, word + '\n');
	if (fs.readSync(0, byte, 0, 1) !== 1)
		process.exit(4);
}

function descend(depth, size) {
	if (depth > 0)
		descend(depth - 1, size);
	else
		kept.push(Buffer.allocUnsafeSlow(size));
	return size;
}

wait('READY');
descend(10, 70001);
descend(40, 70002);
wait('DONE');
