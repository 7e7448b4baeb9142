// The team's secrets: names, where they go and how many units use them. A value is typed here and never shown.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { cache } from '../api/cache.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { secretsQuery } from '../api/team-queries.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { Time } from '../ui/format.tsx'
import { Card, Failure, Skeleton } from '../ui/page-parts.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import { SecretForm } from './secret-form.tsx'
import styles from './team.module.css'

export function Secrets({ mayChange }: { mayChange: boolean }) {
  const { team } = useHere()
  const { data, error, refetch } = useQuery(secretsQuery(team.id))
  const [edited, edit] = useState<Contract.Secret | 'new' | null>(null)
  const [leavingName, leave] = useState<string | null>(null)
  // As it is now: another person may have bound it to units since.
  const leaving = data?.find(({ name }) => name === leavingName) ?? null
  const again = () => void cache.invalidateQueries({ queryKey: secretsQuery(team.id).queryKey })
  const remove = async ({ name }: Contract.Secret) => {
    try {
      const unbound = await berthOf(team.id).secrets.delete(name)
      tell(unbound.length === 0 ? `Deleted ${name}` : `Deleted ${name}; ${unitsText(unbound.length)} lost it`)
    } catch (failure) {
      tellError(explain(failure))
    }
    again()
  }
  return (
    <Card title="Secrets" action={mayChange && <Button onClick={() => edit('new')}>Add a secret</Button>}>
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={1} />
      ) : data.length === 0 ? (
        <p>
          None yet. Units use a secret of the team, such as the key of a model provider, and never hold it:
          Berth puts its value into their requests to its hosts.
        </p>
      ) : (
        <SecretsTable
          secrets={data}
          actions={mayChange ? { replace: edit, remove: ({ name }) => leave(name) } : null}
        />
      )}
      <Dialog
        title={edited === 'new' ? 'Add a secret' : `Replace the value of ${edited?.name ?? ''}`}
        isOpen={edited !== null}
        onClose={() => edit(null)}
      >
        {edited !== null && (
          <SecretForm
            secret={edited === 'new' ? null : edited}
            onDone={() => {
              edit(null)
              again()
            }}
            onCancel={() => edit(null)}
          />
        )}
      </Dialog>
      <Confirm
        title={`Delete ${leaving?.name ?? ''}?`}
        action="Delete"
        isOpen={leaving !== null}
        onClose={() => leave(null)}
        onConfirm={async () => {
          if (leaving) await remove(leaving)
        }}
      >
        <p>
          {leaving !== null &&
            leaving.units > 0 &&
            `${unitsText(leaving.units)} used it, and run on without it. `}
          The value cannot be read back.
        </p>
      </Confirm>
    </Card>
  )
}

type Actions = {
  replace: (secret: Contract.Secret) => void
  remove: (secret: Contract.Secret) => void
}

function SecretsTable({
  secrets,
  actions,
}: {
  secrets: readonly Contract.Secret[]
  actions: Actions | null
}) {
  return (
    <DataTable
      label="Secrets"
      rows={secrets}
      keyOf={({ name }) => name}
      columns={[
        { head: 'Name', cell: ({ name }) => <code className={styles.secretName}>{name}</code> },
        { head: 'Goes to', cell: ({ hosts }) => hosts.join(', '), isExtra: true },
        { head: 'Units', kind: 'number', cell: ({ units }) => units },
        { head: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} />, isExtra: true },
        {
          head: 'Change',
          kind: 'number',
          cell: (secret) =>
            actions && (
              <span className={styles.rowButtons}>
                <Button onClick={() => actions.replace(secret)} aria-label={`Replace ${secret.name}`}>
                  Replace
                </Button>
                <Button
                  kind="danger"
                  onClick={() => actions.remove(secret)}
                  aria-label={`Delete ${secret.name}`}
                >
                  Delete…
                </Button>
              </span>
            ),
        },
      ]}
    />
  )
}

const unitsText = (count: number) => (count === 1 ? '1 unit' : `${count} units`)
