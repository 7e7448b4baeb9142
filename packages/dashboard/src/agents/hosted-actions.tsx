// The settings of an environment, on and off, and its end.

import type { Contract } from '@berth/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { HostedSettings } from './hosted-settings.tsx'
import type { Hosted } from './hosted-text.ts'

export function HostedActions({ hosted }: { hosted: Hosted }) {
  const team = useTeam()
  const navigate = useNavigate()
  const [isBusy, setBusy] = useState(false)
  const [isLeaving, leave] = useState(false)
  const [isEdited, edit] = useState(false)
  const path = `/v1/hosted-agents/${encodeURIComponent(hosted.id)}`
  const turn = async () => {
    setBusy(true)
    try {
      await berthOf(team.id).request<Contract.HostedChanged>('PATCH', path, { body: { on: !hosted.on } })
      await cache.invalidateQueries({ queryKey: keys.hosted(team.id) })
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  const remove = async () => {
    try {
      await berthOf(team.id).request<Contract.HostedDeleted>('DELETE', path)
    } catch (error) {
      tellError(explain(error))
      return
    }
    tell(`Deleted ${hosted.environment}`)
    await navigate({ to: '/t/$team/agents', params: { team: team.slug } })
    void cache.invalidateQueries({ queryKey: keys.agents(team.id) })
    void cache.invalidateQueries({ queryKey: keys.hosted(team.id) })
  }
  return (
    <>
      <Button onClick={() => edit(true)}>Settings…</Button>
      <Button kind={hosted.on ? 'plain' : 'main'} busy={isBusy} onClick={() => void turn()}>
        {hosted.on ? 'Switch off' : 'Switch on'}
      </Button>
      <Button kind="danger" onClick={() => leave(true)}>
        Delete…
      </Button>
      <Dialog title={`Settings of ${hosted.environment}`} isOpen={isEdited} onClose={() => edit(false)}>
        {isEdited && <HostedSettings hosted={hosted} onDone={() => edit(false)} />}
      </Dialog>
      <Confirm
        title={`Delete ${hosted.environment}?`}
        action="Delete"
        isOpen={isLeaving}
        onClose={() => leave(false)}
        onConfirm={remove}
      >
        <p>
          The units of its sessions are destroyed, with what is in them, and its key is revoked. Work that is
          not done stays in the vendor’s queue.
        </p>
      </Confirm>
    </>
  )
}
