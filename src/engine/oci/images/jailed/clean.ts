// Runs in the unpack jail: `clean.ts TASK` makes a root file system safe to store on a host, removes the given paths,
// and sets one time on everything newer than the build.

import { rmSync } from 'node:fs'
import { clean, rootfs, normalizeTimes } from './tree.ts'

type Task = { remove: string[]; settle: { sinceMs: number; toMs: number } }

const task = JSON.parse(process.argv[2] ?? '') as Task
for (const path of task.remove) rmSync(rootfs + path, { recursive: true, force: true })
clean()
normalizeTimes(task.settle)
