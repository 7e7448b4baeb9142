// The files of a unit: folders to browse, and files to read, upload, rename, download and delete. It opens where the unit's
// first process works.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { whyNot } from '../api/unit-can.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { tell, tellError } from '../ui/toast.tsx'
import {
  directoryQuery,
  homeQuery,
  makeFolder,
  nameOf,
  pathIn,
  removeEntry,
  renameEntry,
  upload,
} from './file-calls.ts'
import { FileList } from './file-list.tsx'
import { FileText } from './file-text.tsx'
import { NameDialog } from './name-dialog.tsx'
import { readFilesSearch } from './search.ts'
import { useTakeHome } from './use-take-home.ts'
import { useUnit } from './unit-context.ts'
import styles from './files.module.css'

export function FilesTab() {
  const unit = useUnit()
  const team = useTeam()
  const { path: asked, file } = readFilesSearch(useSearch({ strict: false }))
  const place = { team: team.id, unit }
  const why = whyNot(unit, 'exec')
  // Reading wakes the unit, which costs: of one that sleeps a person asks for it.
  const [isAsked, ask] = useState(unit.state !== 'sleeping')
  const canRead = why === null && isAsked
  const first = useQuery({ ...homeQuery(place), enabled: canRead && asked === undefined })
  // Where that cannot be told, the root.
  const path = asked ?? first.data ?? '/'
  const { data, error, refetch } = useQuery({
    ...directoryQuery(place, path),
    enabled: canRead && (asked !== undefined || !first.isPending),
  })
  const [doomed, setDoomed] = useState<Contract.DirectoryEntry | null>(null)
  const [renamed, setRenamed] = useState<Contract.DirectoryEntry | null>(null)
  const [isMaking, setMaking] = useState(false)
  const names = data?.entries.map(({ name }) => name) ?? []
  const [coming, setComing] = useState(0)
  const [isOver, setOver] = useState(false)
  const home = useTakeHome(place)
  const chooser = useRef<HTMLInputElement>(null)
  const bring = async (files: File[]) => {
    setComing((count) => count + files.length)
    for (const each of files) {
      try {
        await upload(place, path, each)
        tell(`${each.name} is in ${path}`)
      } catch (failure) {
        const said = explain(failure)
        tellError({ ...said, title: `${each.name}: ${said.title}` })
      } finally {
        setComing((count) => count - 1)
      }
    }
    await refetch()
  }
  return (
    <div
      className={`${styles.frame} ${isOver ? styles.over : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(why === null)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        if (why === null) void bring([...event.dataTransfer.files])
      }}
    >
      <div className={styles.bar}>
        <Crumbs path={path} />
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          onChange={({ target }) => {
            void bring([...(target.files ?? [])])
            target.value = ''
          }}
        />
        <Button why={why} busy={coming > 0} onClick={() => chooser.current?.click()}>
          {coming > 0 ? `${coming} to come…` : 'Upload'}
        </Button>
        <Button why={why ?? (data ? null : 'The folder is not read yet.')} onClick={() => setMaking(true)}>
          New folder
        </Button>
        {home.told === null ? (
          <Button why={why} onClick={() => home.take({ path, isWhole: false })}>
            Download as tar
          </Button>
        ) : (
          <Button onClick={home.stop}>Stop the download</Button>
        )}
        <span role="status" className={styles.told}>
          {home.told}
        </span>
      </div>
      {why !== null ? (
        <p className={styles.quiet}>{why}</p>
      ) : !isAsked ? (
        <p className={styles.quiet}>
          It sleeps, and its files are read within it.{' '}
          <Button kind="main" onClick={() => ask(true)}>
            Wake it and look
          </Button>
        </p>
      ) : error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton />
      ) : file !== undefined ? (
        <FileText place={place} path={file} directory={path} />
      ) : (
        <FileList
          path={path}
          entries={data.entries}
          isCut={data.truncated}
          onTake={home.take}
          onRename={setRenamed}
          onDelete={setDoomed}
        />
      )}
      {isMaking && (
        <NameDialog
          title="New folder"
          action="Create"
          taken={names}
          onClose={() => setMaking(false)}
          onName={async (name) => {
            await makeFolder(place, path, name)
            await refetch()
          }}
        />
      )}
      {renamed !== null && (
        <NameDialog
          title={`Rename ${renamed.name}`}
          action="Rename"
          name={renamed.name}
          taken={names}
          onClose={() => setRenamed(null)}
          onName={async (name) => {
            await renameEntry(place, path, renamed.name, name)
            await refetch()
          }}
        />
      )}
      <Confirm
        title={`Delete ${doomed?.name}?`}
        action="Delete it"
        isOpen={doomed !== null}
        onClose={() => setDoomed(null)}
        onConfirm={async () => {
          if (doomed === null) return
          try {
            await removeEntry(place, pathIn(path, doomed.name), doomed.type === 'directory')
          } catch (failure) {
            tellError(explain(failure))
          }
          await refetch()
        }}
      >
        <p>
          {doomed?.type === 'directory' ? 'The directory and all that is in it are' : 'The file is'} gone for
          good.
        </p>
      </Confirm>
    </div>
  )
}

function Crumbs({ path }: { path: string }) {
  const { slug } = useTeam()
  const { id } = useUnit()
  const names = path.split('/').filter(Boolean)
  const steps = ['/', ...names.map((_, at) => `/${names.slice(0, at + 1).join('/')}`)]
  return (
    <nav aria-label="Directory" className={styles.crumbs}>
      {steps.map((step) => (
        <Link
          key={step}
          to="/t/$team/units/$id/files"
          params={{ team: slug, id }}
          search={{ path: step }}
          activeOptions={{ exact: true }}
          aria-current={step === path ? 'location' : undefined}
        >
          <bdi>{nameOf(step) || 'root'}</bdi>
        </Link>
      ))}
    </nav>
  )
}
