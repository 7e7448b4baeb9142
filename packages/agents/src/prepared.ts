// The unit that was prepared: those of sessions are copies of it. The key must allow such a unit; that is known before any work is
// taken.

import { builtInRegistry, parseImageReference } from '../../../src/contract/image-reference.ts'
import { isWithin } from '../../../src/lib/egress/rules.ts'
import { sleepWindowMs } from '../../../src/lib/duration.ts'
import { type Berth, BerthError, type Contract, type Unit } from '../../sdk/src/index.ts'
import { QueueRefused } from './queue.ts'

/** Of the units of sessions. */
type Copies = { copyOf: string | null; sleep: string }

/** Null: those of sessions are no copies. Throws `not_found` if it is gone. */
export async function findPrepared(berth: Berth, { copyOf }: Pick<Copies, 'copyOf'>): Promise<Unit | null> {
  if (copyOf === null) return null
  const found = copyOf.startsWith('unit_') ? await berth.units.get(copyOf) : await berth.units.find(copyOf)
  if (found && found.state !== 'destroyed') return found
  throw new BerthError('not_found', `There is no unit "${copyOf}", of which those of sessions are copies.`)
}

/** Throws `QueueRefused` for a unit that is gone, or that the key would not be allowed to have. */
export async function checkPrepared(berth: Berth, plan: Copies, signal: AbortSignal): Promise<void> {
  const unit = await findPrepared(berth, plan).catch((error: unknown) => {
    if (error instanceof BerthError && ['not_found', 'forbidden'].includes(error.code))
      throw new QueueRefused(error.message)
    throw error
  })
  if (unit === null) return
  const beyond = beyondOf(unit.info, plan.sleep, await berth.quota({ signal }))
  if (beyond === null) return
  throw new QueueRefused(
    `Sessions cannot be copies of the unit "${unit.name}": the key does not allow ${beyond}.`,
  )
}

/** What the key does not allow of it, in words; null if all is allowed. */
function beyondOf(unit: Contract.Unit, sleep: string, key: Contract.Quota): string | null {
  const { registry } = parseImageReference(unit.image)
  const secret = Object.values(unit.env)
    .flatMap((entry) => (typeof entry === 'object' && 'teamSecret' in entry ? [entry.teamSecret] : []))
    .find((name) => ![name, '*'].some((each) => key.allowedSecrets.includes(each)))
  if (!key.allowedSizes.includes(unit.size)) return `its size, ${unit.size}`
  if (registry !== builtInRegistry && !key.allowedRegistries.includes(registry))
    return `images of ${registry}`
  if (!isWithin(unit.egress, key.egress)) return 'what it may reach'
  if (secret !== undefined) return `the team's secret ${secret}`
  if (unit.nested && !key.allowNested) return 'containers in it'
  if (sleepWindowMs(sleep) > sleepWindowMs(key.maxSleep)) return `them to sleep only after ${sleep}`
  return null
}
