// The page on which a person decides about a program. What the program says of itself is shown as plain text, next to
// the little that is proven.

import type { Issue } from '../../contract/errors.ts'
import { agentTitled } from '../../contract/known-agents.ts'
import type { Question, TeamChoice } from '../../domain/oauth/consent.ts'
import { readRedirect } from '../../domain/oauth/redirects.ts'
import { boundsOf, type PlanBounds } from '../../domain/units/admission/plan-bounds.ts'
import { consentFields, type Fields } from './consent-form.ts'
import { escapeHtml } from './html.ts'

export type ConsentView = {
  ticket: string
  question: Question
  fields: Fields
  /** Why the posted form was refused. */
  refusal: { message: string; issues: Issue[] } | null
  /** The address that gets the answer, in words. */
  destination: string
}

export function consentMarkup(view: ConsentView): string {
  const { ticket, question, fields, refusal, destination } = view
  const { client, team, email, connected } = question
  const bounds = boundsOf(team.plan)
  const again = connected
    ? `<p class="note">It is connected to this team already. This changes what it may do wherever it is connected.</p>`
    : ''
  return `
<dl>
<dt>It calls itself</dt><dd><bdi>${escapeHtml(client.name ?? 'nothing')}</bdi></dd>
<dt>Proven is</dt><dd>${provenBy(question)}</dd>
<dt>The answer goes to</dt><dd><strong>${escapeHtml(destination)}</strong></dd>
<dt>You are</dt><dd>${escapeHtml(email)}</dd>
</dl>
${warningsOf(question)
  .map((text) => `<p class="warning">${text}</p>`)
  .join('\n')}
${refusal && refusal.issues.length === 0 ? `<p class="wrong" role="alert">${escapeHtml(refusal.message)}</p>` : ''}
<form method="post" action="/oauth/consent">
<input type="hidden" name="ticket" value="${escapeHtml(ticket)}">
<input type="hidden" name="team" value="${escapeHtml(team.id)}">
<fieldset><legend>Team</legend>${teamsMarkup(view)}</fieldset>
<fieldset><legend>Limits</legend>
<p class="note">It makes units, runs commands in them and publishes them for the team, within these limits. You can change or revoke them at any time.</p>
<p class="note">${planLimits(bounds)}</p>
${again}
${consentFields(fields, bounds, refusal?.issues ?? [])}
</fieldset>
<p class="actions"><button class="main" name="decision" value="connect">Connect</button>
<button name="decision" value="cancel" formnovalidate>Cancel</button></p>
</form>`
}

/** What no choice on this page changes. */
function planLimits({ plan, diskGb, alwaysOn }: PlanBounds): string {
  const disk = `The team has the plan “${plan}”, which limits it too. The disks and volumes of all its units have ${diskGb} GB together, asleep or not.`
  return alwaysOn ? disk : `${disk} A unit that never sleeps needs the Pro plan or above.`
}

function provenBy({ client }: Question): string {
  if (client.kind === 'document')
    return `<strong>${escapeHtml(new URL(client.id).hostname)}</strong> describes it`
  return '<strong>nothing</strong>: it registered itself, under a name of its choice'
}

/** Honest programs can trigger these warnings too; the person decides. */
function warningsOf({ client, redirectUri }: Question): string[] {
  const redirect = readRedirect(redirectUri)
  const site = redirect?.kind === 'web' ? escapeHtml(redirect.name) : null
  const known = agentTitled(client.name)
  const warnings: string[] = []
  if (client.kind === 'registered' && known && site !== null) {
    warnings.push(
      `Anyone can call a program ${escapeHtml(known.title)}. The answer to this one goes to <b>${site}</b>: continue only if you came from there.`,
    )
  }
  if (client.kind === 'document' && site !== null && site !== new URL(client.id).hostname) {
    warnings.push(
      `Its description is at ${escapeHtml(new URL(client.id).hostname)}, but the answer goes to <b>${site}</b>.`,
    )
  }
  if (redirect?.kind === 'app') {
    warnings.push(
      `Any app on this computer can take answers for <b>${escapeHtml(redirect.name)}:</b>. Continue only if you have just started this in that app.`,
    )
  }
  return warnings
}

function teamsMarkup({ ticket, question: { teams, team } }: ConsentView): string {
  const about = ({ name, role, seats }: TeamChoice) =>
    `${escapeHtml(name)} <small>(${role}; ${seats.used} of ${seats.max} seats taken)</small>`
  const others = teams.filter(({ id }) => id !== team.id)
  const links = others.map(
    (other) =>
      `<li><a href="/oauth/consent?ticket=${encodeURIComponent(ticket)}&amp;team=${encodeURIComponent(other.id)}">${about(other)}</a></li>`,
  )
  const choice = links.length === 0 ? '' : `<p class="note">Or another one:</p><ul>${links.join('')}</ul>`
  return `<p><b>${about(team)}</b></p>${choice}`
}
