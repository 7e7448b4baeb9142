// Says why a form was refused, with a link to the page that helps.

import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Failure } from '../ui/page-parts.tsx'

export function Refused({ error }: { error: unknown }) {
  const team = useTeam()
  if (error === null || error === undefined) return null
  const { link, fields, ...said } = explain(error)
  return (
    <Failure {...said} isFound>
      {fields.map(({ path, message }) => (
        <p key={path}>
          <code>{path}</code>: {message}
        </p>
      ))}
      {link && (
        <Link to={`/t/$team${link.to}`} params={{ team: team.slug }}>
          {link.text}
        </Link>
      )}
    </Failure>
  )
}
