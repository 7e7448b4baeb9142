// Says why a form was refused, with a link to the page that helps.

import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Failure } from '../ui/page-parts.tsx'

export function Refused({ error }: { error: unknown }) {
  const team = useTeam()
  if (error === null || error === undefined) return null
  const { link, fields, ...said } = explain(error)
  // What is listed by field is not said twice.
  const isListed = fields.length > 0 && fields.every(({ message }) => said.text.includes(message))
  return (
    <Failure {...said} text={isListed ? '' : said.text} isFound>
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
