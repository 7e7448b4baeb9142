// The frame of every page of a team: the sidebar, the bar that says when nothing is live, and the page.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { Suspense, useEffect, useMemo } from 'react'
import { liveOf } from '../api/live.ts'
import { keepTeam, readTeam } from '../api/place.ts'
import { meQuery } from '../api/queries.ts'
import { Skeleton } from '../ui/page-parts.tsx'
import { Toasts } from '../ui/toast.tsx'
import { KeyHelp } from './key-help.tsx'
import { LiveBar } from './live-bar.tsx'
import { NotHere, NotHereAlone } from './not-here.tsx'
import { Palette } from './palette.tsx'
import { Sidebar } from './sidebar.tsx'
import { HereContext } from './team-context.ts'
import styles from './shell.module.css'

export function Shell() {
  // Without Suspense: React keeps a fallback of it on the screen for 300 ms, and this answer comes sooner.
  const { data: me } = useQuery({ ...meQuery, throwOnError: (_, { state }) => state.data === undefined })
  return me ? <Signed me={me} /> : <Frame />
}

/** Before it is known who looks: of the measures of what comes. */
function Frame() {
  return (
    <div className={styles.shell}>
      <div className={styles.frame} />
      <main className={styles.main}>
        <Skeleton isPage />
      </main>
    </div>
  )
}

function Signed({ me }: { me: Contract.Me }) {
  const { team: slug } = useParams({ strict: false })
  const asked = me.teams.find((each) => each.slug === slug)
  // For an address of no team of theirs: what is not there is said in the frame of one that is.
  const team = asked ?? me.teams.find((each) => each.slug === readTeam()) ?? me.teams[0]
  const here = useMemo(() => team && { team, me }, [team, me])
  useEffect(() => {
    if (asked) keepTeam(asked.slug)
    if (team) liveOf(team.id)
  }, [asked, team])
  if (!here) return <NotHereAlone />
  return (
    <HereContext value={here}>
      <a className={styles.skip} href="#page">
        Skip to the page
      </a>
      <div className={styles.shell}>
        <Sidebar />
        <main id="page" className={styles.main} tabIndex={-1}>
          <LiveBar />
          <Suspense fallback={<Skeleton isPage />}>{asked ? <Outlet /> : <NotHere />}</Suspense>
          <Palette />
          <KeyHelp />
          <Toasts />
        </main>
      </div>
    </HereContext>
  )
}
