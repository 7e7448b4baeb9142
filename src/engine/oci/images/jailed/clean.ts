// Runs in the unpack jail: `clean.ts PATH…` makes a root file system safe to lie on a host, without the paths.

import { rmSync } from 'node:fs'
import { clean, rootfs } from './tree.ts'

for (const path of process.argv.slice(2)) rmSync(rootfs + path, { recursive: true, force: true })
clean()
