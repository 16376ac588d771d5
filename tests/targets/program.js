// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocates natively from JavaScript that gets hot: parsing, buffers, compression, hashes.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const zlib = require('zlib');

const byte = Buffer.alloc(1);
const kept = [];

function wait(word) {
	fs.writeSync(1, word + '\n');
	if (fs.readSync(0, byte, 0, 1) !== 1)
		process.exit(4);
}

function work(i) {
	kept.push(JSON.parse(JSON.stringify({number: i, list: ['x' + i, i]})));
	if (i % 50 === 0)
		kept.push(Buffer.alloc(5000));
	if (i % 500 === 0)
		kept.push(zlib.deflateSync(Buffer.alloc(10000, i)));
	if (i % 20 === 0)
		kept.push(crypto.createHash('sha256').update('x' + i).digest('hex'));
}

wait('READY');
for (let i = 0; i < 20000; i++)
	work(i);
wait('DONE');
