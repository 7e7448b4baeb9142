// How the units of an environment are made from now on, and another credential for it.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { cache, keys } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { explain, faultAt } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Field, SecretInput } from '../ui/field.tsx'
import { Failure } from '../ui/page-parts.tsx'
import { tell } from '../ui/toast.tsx'
import { NOTHING_TO_SAVE } from '../ui/sentences.ts'
import { AtOnceField, HostedFields } from './hosted-fields.tsx'
import { type Hosted, lackOf, planOf, textsOfHosted } from './hosted-text.ts'
import styles from './agents.module.css'

export function HostedSettings({ hosted, onDone }: { hosted: Hosted; onDone: () => void }) {
  const team = useTeam()
  const [texts, setTexts] = useState(() => textsOfHosted(hosted))
  const [environmentKey, setKey] = useState('')
  const isChanged =
    environmentKey.trim() !== '' || JSON.stringify(texts) !== JSON.stringify(textsOfHosted(hosted))
  const save = useMutation({
    mutationFn: async () =>
      await berthOf(team.id).request<Contract.HostedChanged>(
        'PATCH',
        `/v1/hosted-agents/${encodeURIComponent(hosted.id)}`,
        {
          body: { ...planOf(texts), ...(environmentKey.trim() && { environmentKey: environmentKey.trim() }) },
        },
      ),
    onSuccess: async () => {
      tell('Saved')
      onDone()
      await cache.invalidateQueries({ queryKey: keys.hosted(team.id) })
    },
  })
  const refused = save.error && explain(save.error)
  const faultOf = (path: string) => faultAt(refused?.fields, path)
  const why = isChanged ? lackOf(texts) : NOTHING_TO_SAVE
  return (
    <form
      className={styles.editor}
      aria-label="Settings"
      onSubmit={(event) => {
        event.preventDefault()
        if (why === null && !save.isPending) save.mutate()
      }}
    >
      {refused && refused.fields.length === 0 && <Failure {...refused} />}
      <HostedFields texts={texts} faultOf={faultOf} onChange={setTexts} />
      <div className={styles.fields}>
        <AtOnceField texts={texts} fault={faultOf('atOnce')} onChange={setTexts} />
        <Field
          label="Another key of the environment"
          note="Leave empty to keep it. It is never shown."
          error={faultOf('environmentKey')}
        >
          {(props) => <SecretInput {...props} value={environmentKey} onChange={setKey} />}
        </Field>
      </div>
      <div className={styles.buttons}>
        <Button type="submit" kind="main" busy={save.isPending} why={why}>
          Save
        </Button>
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </form>
  )
}
