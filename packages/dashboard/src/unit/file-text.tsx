// Shows one file as text or as a picture, never as HTML.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { Code } from '../ui/copy.tsx'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { fileQuery, nameOf, pictureOf, type Place, textOf } from './file-calls.ts'
import { useUnit } from './unit-context.ts'
import styles from './files.module.css'

/** Above it a page of text is too much for a browser to lay out at once. */
const SHOWN_CHARS = 200_000

export function FileText({ place, path, directory }: { place: Place; path: string; directory: string }) {
  const { slug } = useTeam()
  const { id } = useUnit()
  const { data, error, refetch } = useQuery(fileQuery(place, path))
  const picture = data === undefined ? null : pictureOf(data)
  const text = data && textOf(data)
  return (
    <section aria-label={path} className={styles.file}>
      <div className={styles.bar}>
        <h2 className={styles.title}>
          <bdi>{nameOf(path)}</bdi>
        </h2>
        <span className={styles.quiet}>{data && byteSize(data.length)}</span>
        <Link
          to="/t/$team/units/$id/files"
          params={{ team: slug, id }}
          search={{ path: directory }}
          className={buttonClass()}
        >
          Close
        </Link>
      </div>
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : picture !== null ? (
        <img className={styles.picture} src={picture} alt={nameOf(path)} />
      ) : text === undefined ? (
        <Skeleton />
      ) : text === null ? (
        <p className={styles.quiet}>This is not text. Download it to open it.</p>
      ) : (
        <>
          <Code text={text.slice(0, SHOWN_CHARS)} label={nameOf(path)} />
          {text.length > SHOWN_CHARS && (
            <p className={styles.quiet}>Only the beginning is shown. Download it for the rest.</p>
          )}
        </>
      )}
    </section>
  )
}
