// Edits the policy of an agent: says what the change would do, and sends only what was changed.

import type { Contract } from '@berth/sdk'
import { useMutation } from '@tanstack/react-query'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { cache, keys } from '../api/cache.ts'
import { agentsQuery } from '../api/team-queries.ts'
import { Button } from '../ui/button.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { NOT_VALID, NOTHING_TO_SAVE } from '../ui/sentences.ts'
import type { Use } from './agent-use.ts'
import { effectsOf, narrowsText, stopsText } from './policy-effects.ts'
import { PolicyForm } from './policy-form.tsx'
import { differences, type Faults, partOf, type Policy, type PolicyField, sentence } from './policy-text.ts'
import { useDryRun } from './use-dry-run.ts'
import { usePolicyEdit } from './use-policy-edit.ts'
import styles from './agents.module.css'

export function PolicyEditor({ team, agent, use }: { team: string; agent: Contract.Agent; use: Use }) {
  const served = agent.policy as Policy
  const edit = usePolicyEdit(served)
  const save = useMutation({
    mutationFn: async () => await sendChange(team, agent.id, edit),
    onSuccess: (saved) => {
      if (saved === null) return
      edit.reset(saved)
      tell(`Saved what ${agent.name} may do`)
    },
    onError: (error) => {
      const { fields, ...said } = explain(error)
      if (fields.length === 0) tellError(said)
    },
  })
  const faults = { ...faultsOf(save.error), ...edit.faults }
  const would = useDryRun(team, agent.id, edit)
  const effects = [
    ...effectsOf(edit.base, edit.policy, edit.changed, use),
    ...(would === null ? [] : [stopsText(would.stops), ...narrowsText(would.narrows)]),
  ]
  return (
    <form
      className={styles.editor}
      aria-label="Limits"
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <PolicyForm texts={edit.texts} faults={faults} onChange={edit.setTexts} />
      <div role="status" className={styles.told}>
        {edit.told.map((line) => (
          <p key={line} className={styles.theirs}>
            Somebody else changed this meanwhile. {line}.
          </p>
        ))}
        {edit.conflicts.map(({ field, label, mine, theirs }) => (
          <div key={field} className={styles.theirs}>
            <p>
              Somebody else changed “{label}” to <b>{theirs}</b>, you to <b>{mine}</b>.
            </p>
            <Button onClick={() => edit.choose(field, 'theirs')}>Use theirs</Button>
            <Button onClick={() => edit.choose(field, 'mine')}>Keep mine</Button>
          </div>
        ))}
        {edit.changed.length === 0 && edit.told.length === 0 && edit.conflicts.length === 0 && (
          <p className={styles.may}>No changes yet. What they would do is shown here first.</p>
        )}
        {edit.changed.length > 0 && <p>→ {sentence(edit.policy)}</p>}
        {effects.map((effect) => (
          <p key={effect} className={styles.effect}>
            {effect}
          </p>
        ))}
      </div>
      <div className={styles.buttons}>
        <Button type="submit" kind="main" busy={save.isPending} why={whyNotSaved(edit)}>
          Save
        </Button>
        {edit.changed.length > 0 && <Button onClick={() => edit.reset(served)}>Undo my changes</Button>}
      </div>
    </form>
  )
}

type Edit = ReturnType<typeof usePolicyEdit>

function whyNotSaved({ faults, conflicts, changed }: Edit): string | null {
  if (Object.keys(faults).length > 0) return NOT_VALID
  if (conflicts.length > 0) return 'Choose first what becomes of the other change.'
  return changed.length === 0 ? NOTHING_TO_SAVE : null
}

/** Returns the saved policy; null if another person has changed the same field, which is then on the page. */
async function sendChange(team: string, id: string, { base, policy, changed }: Edit): Promise<Policy | null> {
  if (changed.length === 0) return null
  // Events may be late: what is there now decides.
  const { agents } = await cache.fetchQuery({ ...agentsQuery(team), staleTime: 0 })
  const now = agents.find((each) => each.id === id)?.policy as Policy | undefined
  const theirs = now === undefined ? [] : differences(base, now)
  if (now && theirs.some((field) => changed.includes(field) && differences(policy, now).includes(field)))
    return null
  const { agent } = await berthOf(team).request<Contract.AgentChanged>(
    'PATCH',
    `/v1/agents/${encodeURIComponent(id)}`,
    { body: { policy: partOf(policy, changed) } },
  )
  putAgent(team, agent)
  return agent.policy as Policy
}

function putAgent(team: string, agent: Contract.Agent): void {
  cache.setQueryData<Contract.AgentList>(
    keys.agents(team),
    (old) =>
      old && {
        ...old,
        agents: old.agents.map((each) => (each.id === agent.id ? { ...each, ...agent } : each)),
      },
  )
}

/** The service names fields as `policy.maxSleep` and `policy.allowedSizes.0`. */
export function faultsOf(error: unknown): Faults {
  if (error === null) return {}
  const named = explain(error).fields.map(
    ({ path, message }) => [path.split('.')[1] as PolicyField, message] as const,
  )
  return Object.fromEntries(named.filter(([field]) => field))
}
