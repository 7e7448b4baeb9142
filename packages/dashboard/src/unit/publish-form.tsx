// Publishes a port of the unit, changes who may visit it, or gives it another address.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { cache, keys } from '../api/cache.ts'
import { explain } from '../api/explain.ts'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Copied } from '../ui/copy.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { Refused } from './refused.tsx'
import styles from './unit.module.css'

type Mode = Contract.Exposed['mode']

const modes = [
  { value: 'private', label: 'by private link' },
  { value: 'public', label: 'for everybody' },
] as const satisfies readonly { value: Mode; label: string }[]

export function PublishForm({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const ports = [...new Set([...unit.ports, ...unit.databasePorts.map(({ port }) => port)])]
  const [port, setPort] = useState(String(unit.endpoints[0]?.port ?? unit.expose ?? ports[0] ?? ''))
  const now = unit.endpoints.find((each) => String(each.port) === port)
  const [isAsked, setAsked] = useState(false)
  const [chosen, setMode] = useState<Mode | null>(null)
  const mode = chosen ?? now?.mode ?? 'private'
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async (rotate: boolean) =>
      await berthOf(team.id).request<Contract.Exposed>(
        'POST',
        `/v1/units/${encodeURIComponent(unit.id)}/expose`,
        { body: { port: Number(port), mode, ...(rotate && { rotate }) }, extraMs: 120_000 },
      ),
    onSuccess: () => void cache.invalidateQueries({ queryKey: keys.unit(team.id, unit.id) }),
  })
  const isPort = /^[1-9]\d{0,4}$/.test(port) && Number(port) < 65_536
  const why = whyNot(unit, 'exec') === null || unit.state === 'stopped' ? null : whyNot(unit, 'exec')
  const fault = error && explain(error).fields.find(({ path }) => path === 'port')?.message
  return (
    <form
      className={styles.fields}
      aria-label="Publish a port"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && isPort && !isPending) mutate(false)
      }}
    >
      <Field label="Port" error={fault || (isPort || port === '' ? undefined : 'A number up to 65535.')}>
        {(props) =>
          ports.length > 0 ? (
            <Select
              id={props.id}
              value={port}
              options={ports.map((each) => ({ value: String(each), label: String(each) }))}
              onChange={setPort}
            />
          ) : (
            <input
              {...props}
              className={inputClass}
              inputMode="numeric"
              value={port}
              onChange={(event) => setPort(event.target.value.trim())}
            />
          )
        }
      </Field>
      <Field label="Open">
        {(props) => <Select id={props.id} value={mode} options={modes} onChange={setMode} />}
      </Field>
      {!fault && <Refused error={error} />}
      {data && (
        <div role="status">
          <Copied text={data.url} label="Copy the address" />
          {data.warning !== undefined && <p className={styles.quiet}>{data.warning}</p>}
        </div>
      )}
      <div className={styles.buttons}>
        <Button type="submit" why={isPort ? why : 'Choose a port first.'} busy={isPending}>
          {now === undefined ? 'Publish' : now.mode === mode ? 'Publish again' : 'Change it'}
        </Button>
        {now !== undefined && (
          <Button why={why} busy={isPending} onClick={() => setAsked(true)}>
            New address…
          </Button>
        )}
      </div>
      <Confirm
        title={`A new address for port ${port}?`}
        action="New address"
        isOpen={isAsked}
        onClose={() => setAsked(false)}
        onConfirm={async () => await Promise.resolve(mutate(true))}
      >
        <p>The current address stops working within a second, for everybody who has it.</p>
      </Confirm>
    </form>
  )
}
