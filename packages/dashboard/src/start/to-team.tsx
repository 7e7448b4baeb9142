// Redirects the bare address to the units of the team that was opened last.

import { useSuspenseQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { useState } from 'react'
import { readTeam, takePlace } from '../api/place.ts'
import { meQuery } from '../api/queries.ts'
import { Empty } from '../ui/page-parts.tsx'

export function ToTeam() {
  const { data: me } = useSuspenseQuery(meQuery)
  const [place] = useState(takePlace)
  const last = readTeam()
  const team =
    me.teams.find(({ slug }) => slug === last) ??
    me.teams.find(({ id }) => id === me.currentTeamId) ??
    me.teams[0]
  if (!team)
    return (
      <main>
        <Empty title="You are in no team" isPage />
      </main>
    )
  if (place !== null) return <Navigate to={place as '/'} replace />
  return <Navigate to="/t/$team/units" params={{ team: team.slug }} replace />
}
