// Finds out whether containers can run in the units of class gvisor: their images are layers, each mounted over those before,
// and the unit's own disk has them. A runsc of 2024 has no such mount there, and lacks the flags.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeProbe } from '../exec/control-probe.ts'
import { run } from '../kernel/programs.ts'
import type { Paths } from '../paths.ts'
import { capabilitySets } from './capabilities.ts'
import type { Driver } from './driver.ts'
import { probeConfig } from './probe-bundle.ts'
import { inNamespace, PROBE_TIMEOUT_MS } from './probing.ts'

const BUSYBOX = '/helper/busybox'

/** Mounts layers on the disk, removes what the lower one has, and makes it again, as a build does. */
const SCRIPT = `
b=${BUSYBOX}
$b mkdir -p /lower/a /upper /work /merged && $b touch /lower/a/old
$b mount -t overlay overlay -o lowerdir=/lower,upperdir=/upper,workdir=/work /merged
$b rm -r /merged/a && $b mkdir /merged/a
[ ! -e /merged/a/old ] && $b unshare -n -m $b true
`

/** Runs such layers in a sandbox of a driver for such machines. Null: they can; else why they cannot. */
export async function probeNested(paths: Paths, driver: Driver, instanceId: string): Promise<string | null> {
  const container = `probe-nested-${instanceId}`
  const bundle = join(paths.runs, container)
  const rootfs = join(bundle, 'rootfs')
  await mkdir(rootfs, { recursive: true, mode: 0o700 })
  try {
    const outcome = await inNamespace(driver, instanceId, async (namespace) => {
      const config = probeConfig(paths, namespace, rootfs, [BUSYBOX, 'sh', '-e', '-c', SCRIPT])
      const process = { ...config.process, capabilities: capabilitySets(0, true) }
      await writeFile(join(bundle, 'config.json'), JSON.stringify({ ...config, process }), { mode: 0o600 })
      const args = [...driver.globalArgs, 'run', '--bundle', bundle, container]
      return await run(driver.launcher, args, { timeoutMs: PROBE_TIMEOUT_MS })
    })
    if (outcome.exitCode === 0) return null
    const said = outcome.timedOut ? 'it hung' : outcome.stderr.trim().slice(-200)
    return `runsc ${driver.version} of this host cannot mount their layers (${said})`
  } finally {
    await removeProbe(paths, driver, container)
  }
}
