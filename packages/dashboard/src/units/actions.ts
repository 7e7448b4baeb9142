// What a person does with units. Nothing is shown before the service has answered; its answer goes into the cache.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { eventsSoFar, putUnit } from '../api/apply-event.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import type { UnitAction } from '../api/unit-can.ts'
import { tell, tellError } from '../ui/toast.tsx'

type Unit = Contract.Unit
export type QuickAction = Extract<UnitAction, 'start' | 'sleep' | 'stop' | 'fork' | 'destroy'>

/** Runs one action on one unit; its answer is shown, and so is its refusal. */
export function useUnitAction(team: string) {
  return useMutation({
    mutationFn: async ({ unit, action }: { unit: Unit; action: QuickAction }) =>
      await act(team, unit, action),
    onError: (error) => tellError(explain(error)),
  })
}

export async function act(team: string, unit: Unit, action: QuickAction): Promise<void> {
  const asOf = eventsSoFar()
  const path = `/v1/units/${encodeURIComponent(unit.id)}`
  const berth = berthOf(team)
  switch (action) {
    case 'start':
    case 'stop':
      return putUnit(team, await berth.request<Unit>('POST', `${path}/${action}`, waiting), asOf)
    case 'destroy':
      return putUnit(team, await berth.request<Unit>('DELETE', path, waiting), asOf)
    case 'sleep': {
      const body = { sleep: unit.sleep, now: true }
      const { units } = await berth.request<Contract.SleepResult>('POST', `${path}/sleep`, {
        body,
        ...waiting,
      })
      for (const each of units) putUnit(team, each, asOf)
      return
    }
    case 'fork': {
      const result = await berth.request<Contract.ForkResult>('POST', `${path}/fork`, {
        body: { wait: false },
        idempotencyKey: newKey(),
        ...waiting,
      })
      for (const each of result.units) putUnit(team, each, asOf)
      const [copy] = result.units
      tell(
        `${unit.name} is copied as ${result.units.map(({ name }) => name).join(', ')}`,
        copy && { unit: copy.id, text: `Open ${copy.name}` },
      )
    }
  }
}

const waiting = { extraMs: 120_000 }

/** Browsers have no randomUUID over plain HTTP. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

/** On several units, all of them tried. */
export async function actOnAll(team: string, units: Unit[], action: QuickAction): Promise<void> {
  const outcomes = await Promise.allSettled(units.map(async (unit) => await act(team, unit, action)))
  const failed = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected' ? [{ name: units[at]?.name ?? '', error: outcome.reason as unknown }] : [],
  )
  if (failed.length === 0) return
  const [first] = failed
  const { title, text, requestId, link } = explain(first?.error)
  const names = failed.map(({ name }) => name)
  tellError({
    title: `${title}: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`,
    text,
    requestId,
    link,
  })
}
