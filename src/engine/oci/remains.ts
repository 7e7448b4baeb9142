// What a run leaves on the host, removed in one place: after its end, after a failed start, after a crash.

import { rm } from 'node:fs/promises'
import { killAll, removeCgroup } from './cgroups.ts'
import type { Host } from './host.ts'
import type { RunPaths } from './paths.ts'
import { forgetContainer, type Runtime } from './runtime.ts'
import { reapOrphans } from './children.ts'
import { detachMount } from './syscalls.ts'

/** Removes every effect of a run that never came to be, or is over. Idempotent. */
export async function takeBack(host: Host, runtime: Runtime, paths: RunPaths): Promise<void> {
  await killAll(host.cgroups, paths.container)
  await forgetContainer(runtime, paths.container)
  removeCgroup(host.cgroups, paths.container)
  detachMount(paths.rootfs)
  await rm(paths.dir, { recursive: true, force: true })
  await rm(paths.exit, { force: true })
  void reapOrphans()
}
