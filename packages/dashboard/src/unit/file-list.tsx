// What is in a directory. Names were given by a stranger: they are text, in the direction they are written in.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import Ellipsis from 'lucide-react/icons/ellipsis'
import File from 'lucide-react/icons/file'
import Folder from 'lucide-react/icons/folder'
import { useState } from 'react'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { Time } from '../ui/format.tsx'
import { createMenu, MenuTrigger, SharedMenu } from '../ui/menu.tsx'
import { FILE_BYTES, pathIn } from './file-calls.ts'
import type { Taken } from './use-take-home.ts'
import { useUnit } from './unit-context.ts'
import styles from './files.module.css'

type Entry = Contract.DirectoryEntry

const menu = createMenu<Entry>()
/** Rows that are made at once. */
const SHOWN = 500

export function FileList({
  path,
  entries,
  isCut,
  onTake,
  onRename,
  onDelete,
}: {
  path: string
  entries: readonly Entry[]
  isCut: boolean
  onTake: (what: Taken) => void
  onRename: (entry: Entry) => void
  onDelete: (entry: Entry) => void
}) {
  const { slug } = useTeam()
  const { id } = useUnit()
  const [count, setCount] = useState(SHOWN)
  if (entries.length === 0)
    return <p className={styles.quiet}>This folder is empty. Drop files here to upload them.</p>
  const sorted = entries.toSorted(
    (one, other) => Number(other.type === 'directory') - Number(one.type === 'directory'),
  )
  const searchOf = ({ name, type }: Entry) =>
    type === 'directory' ? { path: pathIn(path, name) } : { path, file: pathIn(path, name) }
  return (
    <>
      <DataTable
        label={`What is in ${path}`}
        rows={sorted.slice(0, count)}
        keyOf={({ name }) => name}
        columns={[
          {
            head: 'Name',
            cell: (entry) =>
              entry.type === 'link' || entry.type === 'other' ? (
                <span className={styles.name}>
                  <File aria-hidden="true" />
                  <bdi>{entry.name}</bdi> <span className={styles.quiet}>{entry.type}</span>
                </span>
              ) : (
                <Link
                  to="/t/$team/units/$id/files"
                  params={{ team: slug, id }}
                  search={searchOf(entry)}
                  className={styles.name}
                >
                  {entry.type === 'directory' ? <Folder aria-hidden="true" /> : <File aria-hidden="true" />}
                  <bdi>{entry.name}</bdi>
                </Link>
              ),
          },
          {
            head: 'Size',
            cell: (entry) => (entry.type === 'file' ? byteSize(entry.bytes) : ''),
            kind: 'number',
          },
          {
            head: 'Changed',
            cell: ({ modifiedAt }) => <Time at={modifiedAt} />,
            kind: 'number',
            isExtra: true,
          },
          {
            head: 'Actions',
            cell: (entry) => (
              <MenuTrigger menu={menu} payload={entry} label={`Actions of ${entry.name}`}>
                <Ellipsis aria-hidden="true" />
              </MenuTrigger>
            ),
            kind: 'number',
          },
        ]}
      />
      <SharedMenu
        menu={menu}
        items={(entry) => {
          const isWhole = entry.type === 'file' && entry.bytes <= FILE_BYTES
          return [
            {
              label: isWhole ? 'Download' : 'Download as tar',
              onSelect: () => onTake({ path: pathIn(path, entry.name), isWhole }),
            },
            { label: 'Rename…', onSelect: () => onRename(entry) },
            'line',
            { label: 'Delete…', onSelect: () => onDelete(entry), isDanger: true },
          ]
        }}
      />
      {sorted.length > count && (
        <p>
          <Button onClick={() => setCount(count + SHOWN)}>{sorted.length - count} more</Button>
        </p>
      )}
      {isCut && <p className={styles.quiet}>This folder has more entries than can be listed.</p>}
    </>
  )
}
