// Files of the host tier that take turns. `npm test` runs one of these groups, another one each day, beside everything
// that no group names; the deep tier runs all of them. They are long, and what they try in every way another file tries
// in one: a unit's sleep, a pull, a crash. A file that is named on the command line always runs.
// The groups take about the same time. Those whose units need the same large image are in one group, so that it is built
// on that day only.

import { isDeep } from './part-of.ts'

/** Of a day. */
const groups: readonly string[][] = [
  [
    'test/flows/crowds.host.test.ts',
    'test/flows/pinging-clients.host.test.ts',
    'test/flows/sudden-death.host.test.ts',
    'test/flows/wake-herd.host.test.ts',
    'src/engine/oci/network/repair.host.test.ts',
    'test/flows/endpoints-web.host.test.ts',
  ],
  [
    'test/flows/every-step.host.test.ts',
    'test/engine/images-maintenance.host.test.ts',
    'test/engine/deaths.host.test.ts',
    'test/flows/soak.host.test.ts',
    'test/flows/mail.host.test.ts',
    'test/flows/upgrade.host.test.ts',
  ],
  [
    'test/flows/recipes.host.test.ts',
    'test/flows/recipe-names.host.test.ts',
    'test/engine/images-hostile.host.test.ts',
    'test/engine/recover.host.test.ts',
    'test/flows/siblings.host.test.ts',
    'test/engine/hostile-images.host.test.ts',
    'test/engine/standbys.host.test.ts',
  ],
  [
    'test/flows/endpoints-databases.host.test.ts',
    'test/flows/endpoints-postgres.host.test.ts',
    'test/flows/mysql.host.test.ts',
    'test/flows/forks-database.host.test.ts',
    'test/flows/restart-under-load.host.test.ts',
    'test/flows/watchdog.host.test.ts',
    'src/engine/oci/network/reach.host.test.ts',
    'test/flows/clients.host.test.ts',
    'test/flows/canaries.host.test.ts',
  ],
  [
    'test/flows/every-byte.host.test.ts',
    'test/flows/power-cut.host.test.ts',
    'test/flows/coherence.host.test.ts',
    'test/flows/address-reuse.host.test.ts',
    'src/engine/oci/network/traffic.host.test.ts',
    'test/flows/hosts-address.host.test.ts',
    'test/flows/postgres-first-start.host.test.ts',
    'test/flows/mcp.host.test.ts',
  ],
  [
    'test/engine/memory.host.test.ts',
    'test/flows/adoption.host.test.ts',
    'test/flows/own-database.host.test.ts',
    'test/flows/one-database.host.test.ts',
    'test/flows/many-units.host.test.ts',
    'test/engine/ready-machines.host.test.ts',
    'test/engine/ready-machines-kinds.host.test.ts',
    'test/engine/failpoints.host.test.ts',
    'test/flows/operator.host.test.ts',
    'test/engine/remanence.host.test.ts',
  ],
  [
    'test/engine/hung-runtime.host.test.ts',
    'test/engine/crashes.host.test.ts',
    'test/engine/ready-machines-crashes.host.test.ts',
    'test/flows/crashes.host.test.ts',
    'test/flows/visit-herd.host.test.ts',
    'test/flows/public-names.host.test.ts',
    'test/engine/hostile-trees.host.test.ts',
    'test/engine/team-weights.host.test.ts',
    'test/flows/gateway-workers.host.test.ts',
    'test/engine/pool-watch.host.test.ts',
    'test/flows/engine-tls.host.test.ts',
    'test/flows/failed-create.host.test.ts',
  ],
]

/** Set by scripts/test.ts where a tier runs as a whole. */
export const TURNS_VARIABLE = 'BERTH_TEST_TURNS'

export const days = groups.length

/** Returns the files that do not run today, by their paths in the repository. */
export function filesOfOtherDays(): string[] {
  if (isDeep || process.env[TURNS_VARIABLE] !== 'yes') return []
  return filesNotOf(Number(process.env.BERTH_TEST_SEED ?? 0))
}

export function filesNotOf(seed: number): string[] {
  return groups.filter((_, index) => index !== seed % days).flat()
}
