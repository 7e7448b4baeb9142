import type { InviteRecord } from '../../store/invites.ts'
import type { Mail } from '../mail/post.ts'

/**
 * Names of people and teams are quoted, next to the inviter's address, so that a chosen name cannot speak for the
 * service.
 */
export function inviteMail(
  { email, role, expires_at: expiresAt }: Pick<InviteRecord, 'email' | 'role' | 'expires_at'>,
  about: { team: string; inviter: { name: string; email: string } | null; link: string },
): Mail {
  const { team, inviter, link } = about
  const who = inviter === null ? 'A member' : `"${inviter.name}" (${inviter.email})`
  return {
    to: email,
    subject: `Invitation to the team "${team}" on Berth`,
    text: `${who} invites you to the team "${team}" on Berth, as ${role === 'admin' ? 'an admin' : 'a member'}.

To accept, open this link and sign in as ${email}:
${link}

It works once, until ${expiresAt.toISOString()}. If you do not know who this is, ignore it: nothing happens then.
`,
    ...(inviter === null ? {} : { replyTo: inviter.email }),
  }
}
