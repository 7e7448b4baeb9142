// Makes a key. Its secret is in one answer only, so this page keeps it until the person says that they have it.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { e2bSpellingOf } from '../../../../src/lib/key-spelling.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { cache, keys } from '../api/cache.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { Code } from '../ui/copy.tsx'
import { Field, inputClass } from '../ui/field.tsx'
import { Card, Failure, PageHead } from '../ui/page-parts.tsx'
import { NOT_VALID } from '../ui/sentences.ts'
import { faultsOf } from './policy-editor.tsx'
import { PolicyForm } from './policy-form.tsx'
import { policyOf, sentence, smallPolicy, textsOf } from './policy-text.ts'
import styles from './agents.module.css'

export function NewKeyPage() {
  const team = useTeam()
  const [name, setName] = useState('')
  const [texts, setTexts] = useState(() => textsOf(smallPolicy))
  const { policy, faults } = policyOf(texts, smallPolicy)
  const make = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.KeyCreated>('POST', '/v1/keys', { body: { name, policy } }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: keys.agents(team.id) }),
  })
  if (make.data) return <KeyMade slug={team.slug} made={make.data} />
  const refused = make.error && explain(make.error)
  const nameFault = refused?.fields.find(({ path }) => path === 'name')?.message
  const why = Object.keys(faults).length > 0 ? NOT_VALID : name.trim() === '' ? 'Enter a name.' : null
  return (
    <>
      <PageHead title="New key" />
      <form
        className={styles.page}
        aria-label="New key"
        onSubmit={(event) => {
          event.preventDefault()
          if (why === null) make.mutate()
        }}
      >
        {refused && refused.fields.length === 0 && <Failure {...refused} />}
        <Card title="Which agent is it for?">
          <Field label="Name" note="What the audit log calls it, such as ci." error={nameFault}>
            {(props) => (
              <input
                {...props}
                className={inputClass}
                maxLength={80}
                autoComplete="off"
                autoFocus
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
        </Card>
        <Card title="Limits">
          <PolicyForm texts={texts} faults={{ ...faultsOf(make.error), ...faults }} onChange={setTexts} />
          <p className={styles.sentence}>{sentence(policy)}</p>
        </Card>
        <div className={styles.buttons}>
          <Button type="submit" kind="main" busy={make.isPending} why={why}>
            Create key
          </Button>
          <Link to="/t/$team/agents" params={{ team: team.slug }} className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </form>
    </>
  )
}

function KeyMade({ slug, made: { key, secret } }: { slug: string; made: Contract.KeyCreated }) {
  const spelled = e2bSpellingOf(secret)
  const curl = `curl ${location.origin}/v1/units \\\n  -H "authorization: Bearer ${secret}" \\\n  -H "content-type: application/json" \\\n  -d '{"recipe":"python"}'`
  return (
    <>
      <PageHead title={<bdi>{key.name}</bdi>} note="The key is made." />
      <div className={styles.page}>
        <Card title="The key, shown once">
          <Code text={secret} label="the key" />
          <p className={styles.lead}>Save it now: nobody can see it again.</p>
        </Card>
        <Card title="Try it">
          <Code text={curl} label="a first call" />
        </Card>
        {spelled !== null && (
          <Card title="The same key for programs of E2B">
            <Code text={spelled} label="E2B_API_KEY" />
            <p className={styles.lead}>
              Older versions of the E2B libraries take a key in this spelling only, in{' '}
              <code>E2B_API_KEY</code>.
            </p>
          </Card>
        )}
        <div className={styles.buttons}>
          <Link to="/t/$team/agents/$id" params={{ team: slug, id: key.id }} className={buttonClass('main')}>
            I have saved it
          </Link>
        </div>
      </div>
    </>
  )
}
