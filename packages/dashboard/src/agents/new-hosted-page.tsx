// Adds an environment of hosted agents: its credential is typed here and never shown.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { explain, faultAt } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Field, SecretInput, TextInput, inputClass } from '../ui/field.tsx'
import { Card, Failure, PageHead } from '../ui/page-parts.tsx'
import { AtOnceField, HostedFields } from './hosted-fields.tsx'
import { boundOf, firstTexts, lackOf, planOf } from './hosted-text.ts'
import { centsOf } from './policy-text.ts'
import styles from './agents.module.css'

export function NewHostedPage() {
  const team = useTeam()
  const navigate = useNavigate()
  const [environment, setEnvironment] = useState('')
  const [environmentKey, setKey] = useState('')
  const [euros, setEuros] = useState('5.00')
  const [texts, setTexts] = useState(firstTexts)
  const cents = centsOf(euros)
  const add = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.HostedChanged>('POST', '/v1/hosted-agents', {
        body: {
          environment: environment.trim(),
          environmentKey: environmentKey.trim(),
          policy: boundOf(texts, cents ?? 0),
          ...planOf(texts),
        },
      }),
    onSuccess: async ({ environment: { id } }) => {
      void cache.invalidateQueries({ queryKey: keys.agents(team.id) })
      void cache.invalidateQueries({ queryKey: keys.hosted(team.id) })
      await navigate({ to: '/t/$team/agents/hosted/$id', params: { team: team.slug, id } })
    },
  })
  const refused = add.error && explain(add.error)
  const faultOf = (path: string) => faultAt(refused?.fields, path)
  const why =
    environment.trim() === ''
      ? 'Say first which environment.'
      : environmentKey.trim() === ''
        ? 'Paste its key first.'
        : cents === null
          ? 'Euros a day is an amount, such as 5 or 2.50.'
          : lackOf(texts)
  return (
    <>
      <PageHead title="Hosted agents" note="Claude Managed Agents" />
      <form
        className={styles.page}
        aria-label="An environment"
        onSubmit={(event) => {
          event.preventDefault()
          if (why === null && !add.isPending) add.mutate()
        }}
      >
        {refused && refused.fields.length === 0 && <Failure {...refused} isFound />}
        <Card title="Which environment?">
          <p className={styles.sentence}>
            Make a self-hosted environment and a key for it in the vendor’s console. From then on its sessions
            work here, one unit each, and nothing of the vendor is in the units.
          </p>
          <div className={styles.fields}>
            <Field label="Environment" note="Its id, such as env_01AbC." error={faultOf('environment')}>
              {(props) => (
                <TextInput
                  {...props}
                  maxLength={128}
                  autoFocus
                  value={environment}
                  onChange={setEnvironment}
                />
              )}
            </Field>
            <Field
              label="Its key"
              note="Sealed here, and never shown again."
              error={faultOf('environmentKey')}
            >
              {(props) => <SecretInput {...props} value={environmentKey} onChange={setKey} />}
            </Field>
          </div>
        </Card>
        <Card title="The unit of each session">
          <HostedFields texts={texts} faultOf={faultOf} onChange={setTexts} />
        </Card>
        <Card title="All sessions together">
          <div className={styles.fields}>
            <AtOnceField texts={texts} fault={faultOf('atOnce')} onChange={setTexts} />
            <Field
              label="Euros a day"
              note="Work beyond it waits too."
              error={faultOf('policy.dailySpendCapCents')}
            >
              {(props) => (
                <input
                  {...props}
                  className={inputClass}
                  inputMode="decimal"
                  autoComplete="off"
                  value={euros}
                  onChange={(event) => setEuros(event.target.value)}
                />
              )}
            </Field>
          </div>
        </Card>
        <div className={styles.buttons}>
          <Button type="submit" kind="main" busy={add.isPending} why={why}>
            Add environment
          </Button>
          <Link to="/t/$team/agents" params={{ team: team.slug }} className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </form>
    </>
  )
}
