// Runs in the unpack jail: `clean.ts TASK` makes a root file system safe to lie on a host, without what is to be
// removed, and gives all that is newer than the build one time.

import { rmSync } from 'node:fs'
import { clean, rootfs, normalizeTimes } from './tree.ts'

type Task = { remove: string[]; settle: { sinceMs: number; toMs: number } }

const task = JSON.parse(process.argv[2] ?? '') as Task
for (const path of task.remove) rmSync(rootfs + path, { recursive: true, force: true })
clean()
normalizeTimes(task.settle)
