// The fields of a secret, new or with another value.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { berthOf } from '../api/client.ts'
import { explain, faultAt } from '../api/explain.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, LinesInput, SecretInput, TextInput } from '../ui/field.tsx'
import { Failure } from '../ui/page-parts.tsx'
import { tell } from '../ui/toast.tsx'
import styles from './team.module.css'

export function SecretForm({
  secret,
  onDone,
  onCancel,
}: {
  secret: Contract.Secret | null
  onDone: () => void
  onCancel: () => void
}) {
  const { team } = useHere()
  const [name, setName] = useState(secret?.name ?? '')
  const [value, setValue] = useState('')
  const [hosts, setHosts] = useState(secret?.hosts.join('\n') ?? '')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const asked = { value: value.trim(), hosts: hosts.split(/[\s,]+/).filter(Boolean) }
  const save = async () => {
    setBusy(true)
    setError(null)
    try {
      const { units } = await berthOf(team.id).secrets.put(name.trim(), asked)
      tell(units > 0 ? `${name.trim()} is replaced, also in units that run` : `${name.trim()} is kept`)
      onDone()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  const refused = error === null ? null : explain(error)
  const faultOf = (path: string) => faultAt(refused?.fields, path)
  const isSaid = ['name', 'value', 'hosts'].some((path) => faultOf(path) !== undefined)
  const why =
    name.trim() === ''
      ? 'Enter a name first.'
      : asked.value === ''
        ? 'Enter a value first.'
        : asked.hosts.length === 0
          ? 'Say first where it goes.'
          : null
  return (
    <form
      className={styles.secretForm}
      aria-label="Secret"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && !isBusy) void save()
      }}
    >
      {refused !== null && !isSaid && <Failure {...refused} />}
      {secret === null && (
        <Field label="Name" note="As units bind it, such as OPENAI_API_KEY." error={faultOf('name')}>
          {(props) => <TextInput {...props} maxLength={128} value={name} onChange={setName} />}
        </Field>
      )}
      <Field label="Value" note="It cannot be read back." error={faultOf('value')}>
        {(props) => <SecretInput {...props} value={value} onChange={setValue} />}
      </Field>
      <Field
        label="Hosts"
        note="Where the value goes: exact names, one per line, such as api.openai.com."
        error={faultOf('hosts')}
      >
        {(props) => <LinesInput {...props} rows={2} value={hosts} onChange={setHosts} />}
      </Field>
      <div className={styles.formButtons}>
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" kind="main" busy={isBusy} why={why}>
          {secret === null ? 'Add secret' : 'Replace secret'}
        </Button>
      </div>
    </form>
  )
}
