// Finds out whether containers can run in the units of class gvisor: their images are layers, each mounted over those before,
// and the unit's own disk has them. A runsc of 2024 has no such mount there, and lacks the flags.

import type { Paths } from '../paths.ts'
import { capabilitySets } from '../runtime/capabilities.ts'
import type { Driver } from '../runtime/driver.ts'
import { runProbe } from './probing.ts'

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
  const args = [BUSYBOX, 'sh', '-e', '-c', SCRIPT]
  const asked = { name: 'nested', args, capabilities: capabilitySets(0, true) }
  const { exitCode, timedOut, stderr } = await runProbe(paths, driver, instanceId, asked)
  if (exitCode === 0) return null
  const said = timedOut ? 'it hung' : stderr.trim().slice(-200)
  return `runsc ${driver.version} of this host cannot mount their layers (${said})`
}
