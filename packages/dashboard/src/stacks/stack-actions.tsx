// Actions on a whole stack.

import type { Contract } from '@berth/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { cache, keys } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { ForkStack } from './fork-stack.tsx'

export function StackActions({ stack, units }: { stack: Contract.Stack; units: readonly Contract.Unit[] }) {
  const team = useTeam()
  const go = useNavigate()
  const [asks, ask] = useState<'fork' | 'destroy' | null>(null)
  const [isBusy, setBusy] = useState(false)
  const awake = units.find(({ state }) => state === 'running')
  const asleep = awake === undefined ? 'None of its units runs.' : null
  const sleep = async () => {
    if (awake === undefined) return
    setBusy(true)
    try {
      await berthOf(team.id).request('POST', `/v1/units/${encodeURIComponent(awake.id)}/sleep`, {
        body: { sleep: awake.sleep, stack: true, now: true } satisfies Contract.Sleep,
      })
      tell(`${stack.name} goes to sleep, and wakes together`)
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  const destroy = async () => {
    try {
      await berthOf(team.id).request('DELETE', `/v1/stacks/${encodeURIComponent(stack.id)}`)
    } catch (error) {
      tellError(explain(error))
      return
    }
    tell(`${stack.name} is destroyed`)
    void cache.invalidateQueries({ queryKey: keys.stacks(team.id) })
    await go({ to: '/t/$team/stacks', params: { team: team.slug } })
  }
  useKeys('Stack', [
    { keys: null, label: 'Fork the stack…', run: () => ask('fork') },
    { keys: null, label: 'Sleep together', run: () => void sleep() },
  ])
  return (
    <>
      <Button why={units.length === 0 ? 'It has no units.' : null} onClick={() => ask('fork')}>
        Fork…
      </Button>
      <Button busy={isBusy} why={asleep} onClick={() => void sleep()}>
        Sleep together
      </Button>
      <Button kind="danger" onClick={() => ask('destroy')}>
        Destroy…
      </Button>
      <ForkStack stack={stack} isOpen={asks === 'fork'} onClose={() => ask(null)} />
      <Confirm
        title={`Destroy ${stack.name}?`}
        action="Destroy it"
        word={stack.name}
        isOpen={asks === 'destroy'}
        onClose={() => ask(null)}
        onConfirm={destroy}
      >
        <p>
          All {units.length} units with their disks, volumes and endpoints are deleted. This cannot be undone.
        </p>
      </Confirm>
    </>
  )
}
