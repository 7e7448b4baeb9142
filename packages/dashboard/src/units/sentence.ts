// Says in words why a unit is in its state, and how to leave it.

import { type Contract, describeProgress } from '@berth/sdk'
import { span } from '../ui/format.tsx'

type Unit = Contract.Unit

/** Empty where the state says it all. */
export function reasonOf(unit: Unit, now: number): string {
  switch (unit.state) {
    case 'running':
      return unit.sleepsAt === null ? '' : `sleeps ${inTime(unit.sleepsAt, now)} unless used`
    case 'sleeping':
      return `${unit.stoppedReason === 'provider' ? 'its machine was restarted' : 'idle'} · wakes on its next call or visit${memoryOf(unit)}`
    case 'stopped':
      return stoppedReasons[unit.stoppedReason ?? 'user'](unit)
    case 'error':
      return `${unit.error ?? 'it could not be made'}${unit.destroysAt === null ? '' : ` · destroyed ${inTime(unit.destroysAt, now)}`}`
    case 'creating':
      return unit.progress === null ? '' : describeProgress(unit.progress)
    default:
      return ''
  }
}

const memoryOf = ({ memory }: Unit) =>
  memory.kept === null ? '' : memory.kept ? ', as it was' : ', from its disk'

const stoppedReasons = {
  cap: () => 'its agent has spent its cap of today · goes on after 00:00 UTC, or when the cap is raised',
  credits: () => 'the team is out of credits',
  user: () => 'stopped by a call',
  exited: ({ lastExit }) =>
    lastExit === null
      ? 'its process ended'
      : `its process ended with ${lastExit.code}${lastExit.oomKilled ? ', out of memory' : ''}`,
  idle: () => 'idle',
  provider: () => 'its machine was restarted',
} as const satisfies Record<NonNullable<Unit['stoppedReason']>, (unit: Unit) => string>

function inTime(at: string, now: number): string {
  const ms = new Date(at).getTime() - now
  return ms <= 0 ? 'soon' : `in ${span(ms)}`
}
